// @ts-check
/** The files of `npm run new:grant -- NAME` with `--route`, `--agent` or `--polling`: the templates of new-package, with the imports of this project. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fillIn } from './grant-names.js';

const TEMPLATES = join(import.meta.dirname, 'new-package');
const MIGRATIONS = 'src/migrations/migrations.ts';
const PACKAGE = 'customer-authorization-service';

/**
 * The text of each file, by its path in the project.
 * @param {string} project @param {import('./grant-names.js').GrantNames} names
 * @param {string[]} folders of templates; a later one replaces files of those before
 * @returns {Record<string, string>}
 */
export function routeFiles(project, names, folders) {
  const { name, className, variable } = names;
  const list = readFileSync(join(project, MIGRATIONS), 'utf8');
  const now = timeAfter(list);
  /** @param {string} path */
  const templateOf = (path) => folders.map((each) => join(TEMPLATES, each, path)).findLast((each) => existsSync(each));
  /** @param {string} path */
  const filledIn = (path) => fillIn(readFileSync(/** @type {string} */ (templateOf(path)), 'utf8'), names, { now });
  const templates = new Set(folders.flatMap((each) => readdirSync(join(TEMPLATES, each, 'src'))));
  /** @type {Record<string, string>} */
  const files = {};
  for (const template of templates) {
    const file = fillIn(template.replace(/\.template$/, ''), names, { now });
    const text = filledIn(`src/${template}`);
    if (file.endsWith('.extension.ts')) continue;
    if (file.startsWith(now)) files[`src/migrations/${file}`] = text.replace(`${PACKAGE}/grant`, './schema.js');
    else files[`src/grants/${name}/${file}`] = text.replace(`${PACKAGE}/grant`, '../../public/grant.js');
  }
  for (const kind of ['grant', 'route']) {
    files[`test/grants/both-databases/${name}-${kind}.e2e-spec.ts`] = filledIn(`test/$name$-${kind}.spec.ts.template`)
      .replace(/^import .*extension\.js';\n/m, '')
      .replaceAll('../src/', `../../../src/grants/${name}/`)
      .replace(new RegExp(`\\.\\.\\.${variable}Extension,?\\s`, 'g'), '');
  }
  files[MIGRATIONS] = withMigration(list, `${className}Codes${now}`, `./${now}-${name}-codes.js`);
  return files;
}

/** The current time, or one second after the last migration if its time is in the future. @param {string} list */
function timeAfter(list) {
  const times = Array.from(list.matchAll(/(\d{13})-/g), ([, time]) => Number(time));
  return String(Math.max(Date.now(), Math.max(...times) + 1_000));
}

/** @param {string} list @param {string} className @param {string} path */
function withMigration(list, className, path) {
  const end = list.indexOf(',\n];');
  if (end < 0) throw new Error(`${MIGRATIONS} has no list of migrations; add ${className} yourself`);
  const listed = `${list.slice(0, end)},\n  ${className}${list.slice(end)}`;
  return listed.replace(/^(?=import )/m, `import { ${className} } from '${path}';\n`);
}
