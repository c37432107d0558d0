// @ts-check
/**
 * Lists what semantic versioning covers (docs/decisions/0018), one promise per line: routes with their fields, the
 * public surface, the configuration, metrics, audit events, commands and manifests. `docs/releases/` has the list of each
 * release. `npm run check:surface` fails if the list of this version is out of date, or if it differs from the release
 * before by more than the version says. `npm run update:surface` updates the list.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { buildIfStale } from './build.js';
import { publicSurface } from './public-surface.js';
import { byVersion, differences, raised } from './release-differences.js';

const PROJECT = dirname(import.meta.dirname);
const RELEASES = join(PROJECT, 'docs/releases');
const { version } = JSON.parse(text('package.json'));
const LIST = join(RELEASES, `${version}.txt`);
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

const promises = await promisesOfThisVersion();
if (process.argv.includes('--write')) writeFileSync(LIST, `${promises.join('\n')}\n`);
const problems = [...outOfDate(), ...beyondTheVersion()];
for (const problem of problems) console.error(problem);
process.exit(problems.length > 0 ? 1 : 0);

function outOfDate() {
  const changes = differences(existsSync(LIST) ? linesOf(LIST) : [], promises);
  if (changes.length === 0) return [];
  return [
    `docs/releases/${version}.txt is out of date. Raise the version first if ${version} is released already ` +
      '(CONTRIBUTING.md). Then run: npm run update:surface',
    ...changes.map(textOf),
  ];
}

function beyondTheVersion() {
  const earlier = readdirSync(RELEASES)
    .map((name) => basename(name, '.txt'))
    .filter((other) => byVersion(other, version) < 0)
    .sort(byVersion)
    .at(-1);
  if (!earlier) return [];
  const step = raised(earlier, version);
  /** @type {string[]} */
  const allowed = { major: ['major', 'minor'], minor: ['minor'], patch: [] }[step ?? 'patch'];
  return differences(linesOf(join(RELEASES, `${earlier}.txt`)), promises)
    .filter(({ kind }) => !allowed.includes(kind))
    .map((change) => `${earlier} to ${version} is a ${step} version; ${textOf(change)}`);
}

/** @param {{ kind: string; text: string }} change */
function textOf({ kind, text: what }) {
  return `needs a ${kind} version: ${what}`;
}

async function promisesOfThisVersion() {
  buildIfStale();
  const lines = [
    ...(await promisesOfTheRunningService()),
    ...surface(),
    ...matches('src/platform/configuration/configuration.ts', /^ {2}([A-Z][A-Z_]+)[!?:; =]/gm, 'variable'),
    ...(await auditEvents()),
    ...commands(),
    ...manifests(),
  ];
  return [...new Set(lines)].sort();
}

/** The OpenAPI document of both ports, and the metrics. */
async function promisesOfTheRunningService() {
  const folder = mkdtempSync(join(tmpdir(), 'release-promises-'));
  Object.assign(process.env, {
    DATA_DIR: folder,
    HOST: '127.0.0.1',
    PORT: '0',
    MANAGEMENT_PORT: '0',
    LOG_LEVEL: 'fatal',
  });
  Object.assign(process.env, {
    ADMIN_TOKENS: 'release:read:operator-token-of-the-release-list-01',
    DATABASE_URL: '',
    REGISTRY_FILE: '',
  });
  const { runService } = await import(join(PROJECT, 'dist/public/service.js'));
  const service = await runService();
  try {
    const management = `http://127.0.0.1:${service.managementPort}`;
    const document = await (await fetch(`${management}/openapi.json`)).json();
    const metrics = await (await fetch(`${management}/metrics`)).text();
    return [...routes(document), ...Array.from(metrics.matchAll(/^# TYPE (.*)$/gm), ([, name]) => `metric ${name}`)];
  } finally {
    await service.stop();
    rmSync(folder, { recursive: true });
  }
}

/** @param {any} document */
function routes(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).flatMap((method) => {
      const { parameters = [], requestBody, responses } = item[method];
      const route = `route ${method.toUpperCase()} ${path}`;
      return [
        route,
        ...parameters.map(
          (/** @type {any} */ each) => `${route} ${each.in} ${each.name}${each.required ? ' required' : ''}`,
        ),
        ...contents(document, requestBody, `${route} body`),
        ...Object.entries(responses).flatMap(([status, response]) => {
          const resolved = target(document, response);
          return [`${route} ${status}`, ...(status < '4' ? contents(document, resolved, `${route} ${status}`) : [])];
        }),
      ];
    }),
  );
}

/** @param {any} document @param {any} message @param {string} prefix @returns {string[]} */
function contents(document, message, prefix) {
  return Object.entries(message?.content ?? {}).flatMap(([type, { schema }]) =>
    fields(document, schema, `${prefix} ${type}`),
  );
}

/** The fields of a schema and of its alternatives, which have a name. @param {any} document @param {any} schema @param {string} prefix @returns {string[]} */
function fields(document, schema, prefix) {
  const { properties = {}, required = [], items, oneOf, anyOf, allOf, title } = target(document, schema) ?? {};
  const own = Object.entries(properties).flatMap(([name, property]) => [
    `${prefix} ${name}${required.includes(name) ? ' required' : ''}`,
    ...fields(document, property, `${prefix} ${name}`),
  ]);
  const alternatives = (oneOf ?? anyOf ?? []).flatMap((/** @type {any} */ each) => {
    const name = (each.$ref ? basename(each.$ref) : target(document, each).title) ?? 'alternative';
    return fields(document, each, `${prefix} ${name}`);
  });
  const parts = (allOf ?? []).flatMap((/** @type {any} */ each) => fields(document, each, prefix));
  return [
    ...own,
    ...(title && own.length === 0 ? [`${prefix} ${title}`] : []),
    ...alternatives,
    ...parts,
    ...(items ? fields(document, items, prefix) : []),
  ];
}

/** @param {any} document @param {any} part */
function target(document, part) {
  return part?.$ref?.startsWith('#/')
    ? part.$ref
        .slice(2)
        .split('/')
        .reduce((/** @type {any} */ at, /** @type {string} */ key) => at[key], document)
    : part;
}

/** The declarations of the public surface with their members. */
function surface() {
  return publicSurface().flatMap(({ title, declarations }) =>
    declarations.flatMap(({ text: declarationText }) => {
      let declaration = '';
      return declarationText.split('\n').flatMap((line) => {
        if (/^(class|abstract|function|interface|type|const|enum) /.test(line)) declaration = line.replace(/ ?\{$/, '');
        else if (!/^ {2}\S/.test(line)) return [];
        return [
          line === declaration || !line.startsWith('  ')
            ? `surface ${title}: ${declaration}`
            : `surface ${title}: ${declaration}: ${line.trim()}`,
        ];
      });
    }),
  );
}

async function auditEvents() {
  const { AUDIT_EVENT_NAMES } = await import(join(PROJECT, 'dist/platform/audit/audit-event.js'));
  return AUDIT_EVENT_NAMES.map((/** @type {string} */ name) => `audit event ${name}`);
}

/** The commands and their options, as `--help` prints them. */
function commands() {
  const help = execFileSync(process.execPath, [join(PROJECT, 'dist/cli.js'), '--help'], { encoding: 'utf8' });
  return Array.from(help.matchAll(/^ {2}(\S.*?)(?: {2,}|$)/gm), ([, usage]) => `command ${usage}`);
}

/** The components and overlays of Kubernetes, and the resources of each. */
function manifests() {
  const names = readdirSync(join(PROJECT, 'deploy/kubernetes'), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((path) => {
      const folder = dirname(path);
      return parseAllDocuments(text(join('deploy/kubernetes', path))).map((document) => {
        const { kind, metadata } = document.toJS() ?? {};
        return `manifest ${folder} ${kind ?? basename(path)} ${metadata?.name ?? ''}`.trim();
      });
    });
}

/** @param {string} path @param {RegExp} pattern @param {string} kind */
function matches(path, pattern, kind) {
  return Array.from(text(path).matchAll(pattern), ([, name]) => `${kind} ${name}`);
}

/** @param {string} path */
function linesOf(path) {
  return readFileSync(path, 'utf8').trimEnd().split('\n');
}

/** @param {string} path */
function text(path) {
  return readFileSync(join(PROJECT, path), 'utf8');
}
