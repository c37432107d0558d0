import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { declaredProperties } from '../validation/validation.js';
import { violationsOf } from '../validation/violations.js';
import { Configuration } from './configuration.js';
import { conflictsIn, missingIn, urlOf, warningsOf } from './configuration-conflicts.js';
/** The message names variables and rules, never a value. */
export class ConfigurationError extends Error {
  constructor(readonly violations: string[]) {
    super(`the configuration is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

export const DATABASE_VARIABLES = [
  ...['NODE_ENV', 'DATABASE_URL', 'DB_POOL_SIZE', 'DATA_DIR', 'MIGRATE_ON_START', 'LOG_LEVEL'],
];

/** The variables whose file may be empty at the start, because the process follows it. */
const FOLLOWED_VARIABLES = ['ADMIN_TOKENS'];

/**
 * The configuration of a process with ports. With PORT=0 and without AUTH_URL, it gets a free port before it listens,
 * because the issuer of the tokens contains the port.
 */
export async function loadServiceConfiguration(environment: NodeJS.ProcessEnv = process.env): Promise<Configuration> {
  const { PORT, AUTH_URL, AUTH_URL_FILE } = environment;
  const needsPort = PORT?.trim() === '0' && !AUTH_URL && !AUTH_URL_FILE;
  return loadConfiguration(needsPort ? { ...environment, PORT: await freePort() } : environment);
}

/** A port on which no process listens at the moment. */
async function freePort(): Promise<string> {
  const probe = createServer().listen(0);
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return String(port);
}

/**
 * @param used the variables that a command uses. All others keep their defaults: they are neither read nor required.
 * @throws ConfigurationError with all violations
 */
export function loadConfiguration(environment: NodeJS.ProcessEnv = process.env, used?: string[]): Configuration {
  const violations: string[] = [];
  const unused: string[] = [];
  const files: Record<string, string> = {};
  const values: Record<string, string> = {};
  for (const name of declaredProperties(Configuration)) {
    if (used?.includes(name) === false) {
      unused.push(name);
      continue;
    }
    const value = readVariable(name, environment, violations);
    if (value) values[name] = value;
    const file = environment[`${name}_FILE`]; // also an empty file, which may get content later
    if (file && !environment[name]) files[name] = file;
  }
  const configuration = Object.assign(plainToInstance(Configuration, values), { unused, files });
  const isReported = (missing: string) =>
    violations.some((violation) => violation.startsWith(missing.split(':', 1)[0] as string));
  violations.push(...missingIn(configuration).filter((missing) => !isReported(missing)));
  applyDefaults(configuration);
  violations.push(...violationsOf(validateSync(configuration)), ...conflictsIn(configuration));
  configuration.warnings = [...misspelledVariables(environment), ...warningsOf(configuration)];
  if (violations.length > 0) throw new ConfigurationError(violations);
  return configuration;
}

function readVariable(name: string, environment: NodeJS.ProcessEnv, violations: string[]): string | undefined {
  const value = environment[name];
  const file = environment[`${name}_FILE`];
  if (value && file) violations.push(`${name}: given twice, also as ${name}_FILE`);
  if (value?.trim() === '' && value !== '') violations.push(`${name}: is only white space`);
  if (value || !file) return value?.trim();
  const text = textOf(file);
  if (text === undefined) violations.push(`${name}_FILE: the file cannot be read`);
  // an empty DATABASE_URL_FILE would mean the embedded database
  if (text === '' && !FOLLOWED_VARIABLES.includes(name)) violations.push(`${name}_FILE: the file is empty`);
  return text;
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    return undefined;
  }
}

function applyDefaults(configuration: Configuration): void {
  configuration.DATABASE_URL ??= `sqlite:${join(configuration.DATA_DIR, 'service.sqlite')}`;
  // with PORT=0, the missing AUTH_URL is reported already
  configuration.AUTH_URL ??= urlOf(`http://localhost:${configuration.PORT || 80}`).origin;
  configuration.MIGRATE_ON_START ??= configuration.embedded;
  configuration.COOKIE_DOMAIN ??= urlOf(configuration.AUTH_URL).hostname;
}

/** Variables without effect whose names are at most one letter away from a variable of the service. */
function misspelledVariables(environment: NodeJS.ProcessEnv): string[] {
  const known = declaredProperties(Configuration).flatMap((name) => [name, `${name}_FILE`]);
  const unknown = Object.keys(environment).filter((name) => environment[name] && !known.includes(name));
  return unknown.flatMap((name) => {
    const similar = known.find((variable) => isSimilar(lettersOf(name), lettersOf(variable)));
    return similar === undefined ? [] : [`${name}: not a variable of the service; ${similar} is`];
  });
}

const lettersOf = (name: string) => name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');

/** Whether one letter is added, missing, replaced or exchanged with the next one. */
function isSimilar(one: string, other: string): boolean {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  let start = 0;
  while (start < short.length && short[start] === long[start]) start++;
  if (long.length > short.length) return short.slice(start) === long.slice(start + 1);
  if (short.slice(start + 1) === long.slice(start + 1)) return true;
  const isExchanged = short[start] === long[start + 1] && short[start + 1] === long[start];
  return isExchanged && short.slice(start + 2) === long.slice(start + 2);
}
