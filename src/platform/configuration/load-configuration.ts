import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { declaredProperties } from '../validation.js';
import { violationsOf } from '../validation-violations.js';
import { parseAdminTokens } from './admin-tokens.js';
import { Configuration } from './configuration.js';

/** The message names variables and rules, never a value. */
export class ConfigurationError extends Error {
  constructor(readonly violations: string[]) {
    super(`the configuration is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

export const DATABASE_VARIABLES = [
  ...['NODE_ENV', 'DATABASE_URL', 'DB_POOL_SIZE', 'DATA_DIR', 'MIGRATE_ON_START', 'LOG_LEVEL'],
];

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
    violations.some((each) => each.startsWith(missing.split(':', 1)[0] as string));
  violations.push(...missingIn(configuration).filter((missing) => !isReported(missing)));
  applyDefaults(configuration);
  violations.push(...violationsOf(validateSync(configuration)), ...conflictsIn(configuration));
  if (violations.length > 0) throw new ConfigurationError(violations);
  return configuration;
}

function readVariable(name: string, environment: NodeJS.ProcessEnv, violations: string[]): string | undefined {
  const value = environment[name];
  const file = environment[`${name}_FILE`];
  if (value && file) violations.push(`${name}: given twice, also as ${name}_FILE`);
  if (value || !file) return value;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    violations.push(`${name}_FILE: the file cannot be read`);
    return undefined;
  }
}

function applyDefaults(configuration: Configuration): void {
  configuration.DATABASE_URL ??= `sqlite:${join(configuration.DATA_DIR, 'service.sqlite')}`;
  configuration.AUTH_URL ??= urlOf(`http://localhost:${configuration.PORT}`).origin;
  configuration.MIGRATE_ON_START ??= configuration.embedded;
  configuration.COOKIE_DOMAIN ??= urlOf(configuration.AUTH_URL).hostname;
}

/** Parses a URL. An invalid one becomes that of this machine, because the rule of its variable reports it already. */
function urlOf(text: string): URL {
  return new URL(URL.canParse(text) ? text : 'http://localhost');
}

function isLoopback(url: string): boolean {
  const { hostname } = urlOf(url);
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** Whether requests cannot be read on their way. */
const isConfidential = (url: string) => urlOf(url).protocol === 'https:' || isLoopback(url);

/** Whether a token has a name and no name, so that the audit could not say who used it. */
function isUnnamedToo({ ADMIN_TOKEN, ADMIN_TOKENS = '' }: Configuration): boolean {
  const unnamed = ADMIN_TOKEN?.split(',') ?? [];
  return parseAdminTokens(ADMIN_TOKENS).some(({ token }) => unnamed.includes(token));
}

function sharedPorts({ PORT, MANAGEMENT_PORT, ADMIN_PORT, METRICS_PORT }: Configuration): string[] {
  const violations: string[] = [];
  if (ADMIN_PORT && [PORT, MANAGEMENT_PORT].includes(ADMIN_PORT))
    violations.push('ADMIN_PORT: must differ from PORT and MANAGEMENT_PORT');
  if (METRICS_PORT && [PORT, MANAGEMENT_PORT, ADMIN_PORT].includes(METRICS_PORT))
    violations.push('METRICS_PORT: must differ from PORT, MANAGEMENT_PORT and ADMIN_PORT');
  return violations;
}

/** Variables that the process needs and that have no useful default. Called before the defaults are applied. */
function missingIn({ NODE_ENV, AUTH_URL, DATABASE_URL = '', SIGNING_KEYS_FILE, unused }: Configuration): string[] {
  const isNeeded = (name: string, value: string | undefined) => !value && !unused.includes(name);
  return [
    NODE_ENV === 'production' &&
      isNeeded('AUTH_URL', AUTH_URL) &&
      'AUTH_URL: required in production; set it to the https URL at which callers reach the service',
    isShared(DATABASE_URL) &&
      isNeeded('SIGNING_KEYS_FILE', SIGNING_KEYS_FILE) &&
      'SIGNING_KEYS_FILE: required with MySQL and MariaDB, because all processes must use the same keys; create the file with: node dist/cli.js keys generate > keys.json',
  ].filter((violation) => violation !== false);
}

const isShared = (databaseUrl: string) => /^(mysql|mariadb):/.test(databaseUrl);

function conflictsIn(configuration: Configuration): string[] {
  const { AUTH_URL, DATABASE_URL, PORT, MANAGEMENT_PORT, NODE_ENV, TRUSTED_AGENT_ISSUERS, TRY_IT } = configuration;
  const production = NODE_ENV === 'production';
  const issuers = Array.isArray(TRUSTED_AGENT_ISSUERS) ? TRUSTED_AGENT_ISSUERS : [];
  const authority = isShared(DATABASE_URL) ? urlOf(DATABASE_URL).searchParams.get('ssl_ca') : null;
  return [
    production && !isConfidential(AUTH_URL) && 'AUTH_URL: must be https in production',
    production &&
      !issuers.every((issuer) => isConfidential(issuer?.jwks_uri)) && // the rule of the variable reports null
      'TRUSTED_AGENT_ISSUERS: each jwks_uri must be https in production',
    new Set(issuers.map((each) => each?.issuer)).size < issuers.length &&
      'TRUSTED_AGENT_ISSUERS: must name each issuer once',
    production &&
      TRY_IT === true &&
      !isLoopback(AUTH_URL) &&
      'TRY_IT: must not be true in production, unless the host of AUTH_URL is a loopback',
    isUnnamedToo(configuration) && 'ADMIN_TOKENS: must not have a token of ADMIN_TOKEN',
    PORT === MANAGEMENT_PORT && PORT !== 0 && 'MANAGEMENT_PORT: must differ from PORT',
    ...sharedPorts(configuration),
    authority !== null && !existsSync(authority) && 'DATABASE_URL: the file of ssl_ca cannot be read',
  ].filter((violation) => violation !== false);
}
