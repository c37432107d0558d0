// @ts-check
/**
 * `npm run new:grant -- NAME`: writes a working grant and its test from the templates in scripts/new-grant/, and adds
 * its module to src/app.module.ts. It never overwrites existing files of a grant.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PROJECT = dirname(import.meta.dirname);
const TEMPLATES = join(import.meta.dirname, 'new-grant');
const APPLICATION = 'src/app.module.ts';
const BIOME = fileURLToPath(import.meta.resolve('@biomejs/biome/bin/biome'));
const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const MAX_NAME_CHARACTERS = 40;
/** Grant types that RFC 6749 defines. No other grant may use their names. */
const RESERVED_NAMES = ['authorization-code', 'refresh-token', 'password', 'client-credentials', 'implicit'];

try {
  console.log(newGrant(process.argv.slice(2)));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} parameters */
function newGrant([name = '', ...more]) {
  if (name === '' || more.length > 0) throw new Error('usage: npm run new:grant -- NAME');
  if (!NAME.test(name) || name.length > MAX_NAME_CHARACTERS) {
    throw new Error(
      `"${name}" is no name for a grant: lower case words and hyphens, at most ${MAX_NAME_CHARACTERS}, as in sms-code`,
    );
  }
  if (RESERVED_NAMES.includes(name)) throw new Error(`"${name}" has a meaning in RFC 6749; choose another name`);
  const folder = `src/grants/${name}`;
  const test = `test/e2e/${name}-grant.e2e-spec.ts`;
  for (const path of [folder, test]) {
    if (existsSync(join(PROJECT, path))) throw new Error(`${path} is there already; choose another name, or remove it`);
  }
  const application = withModule(readFileSync(join(PROJECT, APPLICATION), 'utf8'), name);
  const files = {
    [`${folder}/${name}.body.ts`]: filledIn('body.ts', name),
    [`${folder}/${name}.settings.ts`]: filledIn('settings.ts', name),
    [`${folder}/${name}.grant.ts`]: filledIn('grant.ts', name),
    [`${folder}/${name}-grant.module.ts`]: filledIn('grant.module.ts', name),
    [test]: filledIn('grant.e2e-spec.ts', name),
    [APPLICATION]: application,
  };
  mkdirSync(join(PROJECT, folder));
  for (const [path, text] of Object.entries(files)) writeFileSync(join(PROJECT, path), text);
  format(Object.keys(files));
  return whatNext(Object.keys(files), folder, name, test);
}

/** @param {string} template @param {string} name */
function filledIn(template, name) {
  return readFileSync(join(TEMPLATES, `${template}.txt`), 'utf8')
    .replaceAll('$name$', name)
    .replaceAll('$Name$', className(name))
    .replaceAll('$grant_type$', grantType(name));
}

/**
 * The text of app.module.ts with the import of the module, and with the module in the list.
 * @param {string} text @param {string} name
 */
function withModule(text, name) {
  const module = `${className(name)}GrantModule`;
  const end = text.lastIndexOf('\n  ],\n})\nexport class AppModule');
  if (end < 0) throw new Error(`${APPLICATION} does not end with the list of modules; add ${module} yourself`);
  const listed = `${text.slice(0, end)}\n    ${module},${text.slice(end)}`;
  return listed.replace(/^(?=import )/m, `import { ${module} } from './grants/${name}/${name}-grant.module.js';\n`);
}

/** @param {string} name */
function className(name) {
  return name.replaceAll(/(^|-)([a-z0-9])/g, (_all, _hyphen, first) => first.toUpperCase());
}

/** @param {string} name */
function grantType(name) {
  return name.replaceAll('-', '_');
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
