#!/usr/bin/env node
// @ts-check
/**
 * `customer-authorization-service new-package NAME`: writes a package that adds a grant to the service. It is a program
 * of the published package and uses only modules of Node.
 *
 * The templates are the packages in examples/, in which the generator replaces the name. Files of
 * scripts/new-package/email replace those of a message to a phone. Compilers and linters skip files that end in
 * `.template`.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { grantNames, renamed, withEmail } from './grant-names.js';

const PROJECT = dirname(import.meta.dirname);
const EMAIL_FILES = join(import.meta.dirname, 'new-package/email');
const USAGE =
  'usage: customer-authorization-service new-package NAME [--message phone|email | --agent] [--grant-type URI]';
const HELP = `${USAGE}

Writes the package NAME into the folder NAME, which must not exist.

  without option          the grant verifies a JWT that another system signs
  --message phone|email   a route sends a short code, which the grant redeems; the same phone has the same customer
  --agent                 an agent creates a link for a customer, and the grant redeems its code
  --grant-type URI        the grant_type of the grant; by default NAME in snake case, such as magic_link
  -h, --help              prints this text`;
const OPTIONS = /** @type {const} */ ({
  message: { type: 'string' },
  agent: { type: 'boolean' },
  'grant-type': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
});
/** What an example has after it was built or tested, and what npm does not pack. */
const NOT_COPIED = ['node_modules', 'dist', 'var', 'package-lock.json', '.gitignore'];
const GITIGNORE = 'node_modules/\ndist/\nvar/\n';

try {
  console.log(newPackage(process.argv.slice(2)));
} catch (error) {
  console.error(/** @type {Error} */ (error).message);
  process.exitCode = 1;
}

/** @param {string[]} args */
function newPackage(args) {
  const { positionals, values } = parseArgs({ args, options: OPTIONS, allowPositionals: true });
  const [command, name, ...more] = positionals;
  if (values.help) return HELP;
  const { message, agent } = values;
  const isMessage = message === 'phone' || message === 'email';
  const isAmbiguous = message !== undefined && (agent || !isMessage);
  if (command !== 'new-package' || !name || more.length > 0 || isAmbiguous) throw new Error(USAGE);
  const names = grantNames(name, values['grant-type']);
  const folder = names.name;
  if (existsSync(folder)) throw new Error(`${folder} exists already; choose another name, or delete the folder`);
  const example = isMessage ? 'phone-code' : agent ? 'agent-link' : 'boarding-pass';
  const files = filesOf(example, names, message === 'email');
  for (const [path, text] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return `written:
${[...files.keys()].map((path) => `  ${folder}/${path}`).join('\n')}

It works without changes. Try it:
  cd ${folder}
  npm install        # with tarballs: npm install PATH/customer-authorization-*.tgz
  npm test

README.md shows how to start the service, and a request for a token.
node_modules/@customer-authorization/service/docs/adding-a-grant.md is the tutorial.`;
}

/**
 * The text of each file, by its path in the package.
 * @param {string} example @param {import('./grant-names.js').GrantNames} names @param {boolean} isEmail
 */
function filesOf(example, names, isEmail) {
  const inEmail = isEmail ? withEmail : /** @param {string} text */ (text) => text;
  const fill = /** @param {string} text */ (text) => renamed(text, example, names, inEmail);
  const files = new Map([['.gitignore', GITIGNORE]]);
  for (const [path, text] of textsIn(join(PROJECT, 'examples', example))) files.set(fill(path), fill(text));
  if (isEmail) for (const [path, text] of textsIn(EMAIL_FILES)) files.set(path.replace(/\.template$/, ''), text);
  const manifest = JSON.parse(/** @type {string} */ (files.get('package.json')));
  files.set('package.json', `${JSON.stringify({ ...manifest, version: '0.1.0' }, null, 2)}\n`);
  const password = randomBytes(24).toString('base64url');
  const registry = /** @type {string} */ (files.get('registry.yaml'));
  return files.set('registry.yaml', registry.replace('password-of-the-example', password));
}

/** @param {string} folder @returns {[path: string, text: string][]} */
function textsIn(folder) {
  const paths = readdirSync(folder).filter((name) => !NOT_COPIED.includes(name));
  const files = paths.flatMap((name) => {
    if (!statSync(join(folder, name)).isDirectory()) return [name];
    return readdirSync(join(folder, name), { recursive: true, encoding: 'utf8' }).map((path) => join(name, path));
  });
  return files
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort()
    .map((path) => [path, readFileSync(join(folder, path), 'utf8')]);
}
