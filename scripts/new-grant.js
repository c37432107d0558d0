// @ts-check
/**
 * `npm run new:grant -- NAME [--route | --agent | --polling]`: writes a working grant and its tests from templates, and adds its module to
 * src/app.module.ts and its migration to src/migrations. It never overwrites existing files of a grant.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { fillIn, grantNames } from './grant-names.js';
import { TEMPLATE_HELP, TEMPLATE_OPTIONS, TEMPLATE_PARSER_OPTIONS, templateFolders } from './grant-templates.js';
import { routeFiles } from './new-grant-route.js';

const PROJECT = dirname(import.meta.dirname);
const TEMPLATES = join(import.meta.dirname, 'new-grant');
const APPLICATION = 'src/app.module.ts';
const USAGE = `usage: npm run new:grant -- NAME [${TEMPLATE_OPTIONS.join(' | ')}]`;
const HELP = `${USAGE}

Writes the grant NAME into src/grants and its tests into test/grants, and adds its module to ${APPLICATION}.

${TEMPLATE_HELP}
  -h, --help        prints this text`;
const BIOME = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));

try {
  console.log(newGrant(process.argv.slice(2)));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
function newGrant(args) {
  const options = /** @type {const} */ ({ ...TEMPLATE_PARSER_OPTIONS, help: { type: 'boolean', short: 'h' } });
  const { positionals, values } = parseArgs({ args, options, allowPositionals: true });
  if (values.help) return HELP;
  if (values.message) throw new Error('--message writes a package; use new-package, and copy the files of its src');
  const [text = '', ...more] = positionals;
  if (text === '' || more.length > 0) throw new Error(USAGE);
  const names = grantNames(text);
  const { name } = names;
  const folders = templateFolders(values);
  const hasRoute = folders.includes('route');
  const folder = `src/grants/${name}`;
  const test = `test/grants/both-databases/${name}-grant.e2e-spec.ts`;
  for (const path of [folder, test]) {
    if (existsSync(join(PROJECT, path))) throw new Error(`${path} exists already; choose another name, or delete it`);
  }
  const files = {
    ...(hasRoute ? routeFiles(PROJECT, names, folders) : grantFiles(folder, test, names)),
    [APPLICATION]: withModule(readFileSync(join(PROJECT, APPLICATION), 'utf8'), names),
  };
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(PROJECT, path)), { recursive: true });
    writeFileSync(join(PROJECT, path), text);
  }
  format(Object.keys(files));
  return hasRoute ? whatNextOfRoute(Object.keys(files), name) : whatNext(Object.keys(files), folder, name, test);
}

/**
 * @param {string} folder @param {string} test @param {import('./grant-names.js').GrantNames} names
 * @returns {Record<string, string>}
 */
function grantFiles(folder, test, names) {
  /** @param {string} template */
  const filledIn = (template) => fillIn(readFileSync(join(TEMPLATES, `${template}.template`), 'utf8'), names);
  return {
    [`${folder}/${names.name}.body.ts`]: filledIn('body.ts'),
    [`${folder}/${names.name}.settings.ts`]: filledIn('settings.ts'),
    [`${folder}/${names.name}.grant.ts`]: filledIn('grant.ts'),
    [`${folder}/${names.name}-grant.module.ts`]: filledIn('grant.module.ts'),
    [test]: filledIn('grant.e2e-spec.ts'),
  };
}

/**
 * The text of app.module.ts with the import of the module, and with the module in the list.
 * @param {string} text @param {import('./grant-names.js').GrantNames} names
 */
function withModule(text, { name, className }) {
  const module = `${className}GrantModule`;
  const end = text.lastIndexOf('\n  ],\n})\nexport class AppModule');
  if (end < 0) throw new Error(`${APPLICATION} does not end with the list of modules; add ${module} yourself`);
  const listed = `${text.slice(0, end)}\n    ${module},${text.slice(end)}`;
  return listed.replace(/^(?=import )/m, `import { ${module} } from './grants/${name}/${name}-grant.module.js';\n`);
}

/** Formats the files: line breaks depend on the length of the name, and imports are sorted. @param {string[]} paths */
function format(paths) {
  const { status, stderr } = spawnSync(process.execPath, [BIOME, 'check', '--write', ...paths], {
    cwd: PROJECT,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
}

/** @param {string[]} files @param {string} folder @param {string} name @param {string} test */
function whatNext(files, folder, name, test) {
  return `written:
${files.map((path) => `  ${path}`).join('\n')}

It works without changes: a caller who knows a client's code gets a customer. Try it:
  npm run check
  npm test -- ${test}

Next (docs/adding-a-grant.md):
  1. ${folder}/${name}.body.ts: the parameters your callers send
  2. ${folder}/${name}.settings.ts: what the registry says of a client, or remove it
  3. ${folder}/${name}.grant.ts: what proves who the token is for
  4. ${test}: an example of a valid request; the conformance kit tests every rule with it`;
}

/** @param {string[]} files @param {string} name */
function whatNextOfRoute(files, name) {
  return `written:
${files.map((path) => `  ${path}`).join('\n')}

It works without changes: the route creates a code, and the grant redeems it once. Try it:
  npm run check
  npm test -- test/grants/both-databases/${name}-grant.e2e-spec.ts test/grants/both-databases/${name}-route.e2e-spec.ts`;
}
