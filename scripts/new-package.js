#!/usr/bin/env node
// @ts-check
/**
 * `customer-authorization-service new-package NAME`: writes a package that adds a grant to the service. It is a program
 * of the published package and uses only modules of Node.
 *
 * Each `x.template` of scripts/new-package/ is the file `x` of a package, in which the generator replaces names such as
 * `$Name$`. Compilers and linters skip files that end in `.template`.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillIn, grantNames } from './grant-names.js';

const TEMPLATES = join(import.meta.dirname, 'new-package');
const SERVICE = JSON.parse(readFileSync(join(dirname(import.meta.dirname), 'package.json'), 'utf8'));
const USAGE =
  'usage: customer-authorization-service new-package NAME [--route | --agent | --message] [--grant-type URI]';
const HELP = `${USAGE}

Writes the package NAME-grant into the folder NAME, which must not exist.

  without option    the grant verifies proofs that another system issues
  --route           the grant redeems codes that a route creates
  --agent           the same, and the route is for agents, who name the customer
  --message         the route sends a short code to an address, and again; an address has one customer
  --grant-type URI  the grant_type of the grant; by default NAME in snake case, such as magic_link
  -h, --help        prints this text`;
const OPTIONS = /** @type {const} */ ({
  route: { type: 'boolean' },
  agent: { type: 'boolean' },
  message: { type: 'boolean' },
  'grant-type': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
});
/** The folders of templates, by option. A later folder replaces files of those before. @type {Record<string, string[]>} */
const FOLDERS = {
  plain: ['common', 'plain'],
  route: ['common', 'route'],
  agent: ['common', 'route', 'agent'],
  message: ['common', 'route', 'message'],
};
/** The packages that a generated package imports itself, in the versions of the service. */
const DEPENDENCIES = ['@nestjs/common', '@nestjs/typeorm', 'class-validator', 'typeorm'];
const DEVELOPMENT_DEPENDENCIES = ['@types/node', 'conformance-kit', 'typescript', 'vitest'];

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
  const [template = 'plain', another] = Object.keys(values).filter((option) => option in FOLDERS);
  if (command !== 'new-package' || !name || more.length > 0 || another) throw new Error(USAGE);
  const names = grantNames(name, values['grant-type']);
  const folder = names.name;
  if (existsSync(folder)) throw new Error(`${folder} exists already; choose another name, or delete the folder`);
  const files = filesOf(FOLDERS[template] ?? [], names);
  for (const [path, text] of files) {
    mkdirSync(join(folder, dirname(path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return `written:
${[...files.keys()].map((path) => `  ${folder}/${path}`).join('\n')}

It works without changes. Try it:
  cd ${folder}
  npm install        # with tarballs: npm install PATH/customer-authorization-service-${SERVICE.version}.tgz PATH/conformance-kit-${SERVICE.version}.tgz
  npm test
  REGISTRY_FILE=registry.yaml npm start

README.md shows a request for a token. node_modules/customer-authorization-service/docs/adding-a-grant.md is the tutorial.`;
}

/**
 * The text of each file, by its path in the package.
 * @param {string[]} folders @param {import('./grant-names.js').GrantNames} names
 */
function filesOf(folders, names) {
  const password = randomBytes(24).toString('base64url');
  const more = { now: String(Date.now()), version: SERVICE.version, password };
  const files = new Map([['package.json', manifest(names)]]);
  for (const folder of folders.map((name) => join(TEMPLATES, name))) {
    for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
      if (!path.endsWith('.template')) continue;
      // npm does not pack files named .gitignore
      const target = fillIn(path.replace(/\.template$/, '').replace(/^gitignore$/, '.gitignore'), names, more);
      files.set(target, fillIn(readFileSync(join(folder, path), 'utf8'), names, more));
    }
  }
  return files;
}

/** @param {import('./grant-names.js').GrantNames} names */
function manifest({ name, grantType }) {
  const versions = {
    ...SERVICE.devDependencies,
    ...SERVICE.dependencies,
    [SERVICE.name]: SERVICE.version,
    'conformance-kit': SERVICE.version,
  };
  /** @param {string[]} packages */
  const pinned = (packages) => Object.fromEntries(packages.map((dependency) => [dependency, versions[dependency]]));
  const content = {
    name: `${name}-grant`,
    version: '0.1.0',
    description: `The customer authorization service with the grant ${grantType}.`,
    private: true,
    type: 'module',
    engines: SERVICE.engines,
    scripts: {
      build: 'tsc -p tsconfig.build.json',
      check: 'tsc',
      start: 'exec node dist/main.js',
      cli: 'node dist/cli.js',
      test: 'npm run build && vitest run',
    },
    dependencies: pinned([...DEPENDENCIES, SERVICE.name].sort()),
    devDependencies: pinned(DEVELOPMENT_DEPENDENCIES),
    overrides: { 'file-type': SERVICE.overrides['file-type'] },
    allowScripts: { '@scarf/scarf': false },
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}
