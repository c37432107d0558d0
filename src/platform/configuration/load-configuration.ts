import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { declaredProperties } from '../validation/validation.js';
import { UNKNOWN_FIELD, violationsOf } from '../validation/violations.js';
import { AdminIssuer } from './admin-issuer.js';
import { Configuration } from './configuration.js';
import { isCookieDomain } from './cookie-domain.js';
import { hasCertificate, isDatabaseUrl } from './database-url.js';
import { misspelledVariables } from './misspelled-variables.js';
import { TrustedIssuer } from './trusted-issuer.js';

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
    violations.some((each) => each.startsWith(missing.split(':', 1)[0] as string));
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

/** A field that has no effect, for example because its name is misspelled. */
function unknownFields(path: string, value: unknown, type: Type): string[] {
  const known = declaredProperties(type);
  return Object.keys(value instanceof type ? value : {})
    .filter((field) => !known.includes(field))
    .map((field) => `${path}.${field}: ${UNKNOWN_FIELD}`);
}

function adminIssuerConflicts({ ADMIN_ISSUER, AUTH_URL, NODE_ENV }: Configuration, agents: TrustedIssuer[]): string[] {
  if (!(ADMIN_ISSUER instanceof AdminIssuer)) return []; // absent, or the rule of the variable reports it
  const { issuer, jwks_uri, audience } = ADMIN_ISSUER;
  return [
    NODE_ENV === 'production' &&
      !(isConfidential(jwks_uri) && isConfidential(issuer)) &&
      'ADMIN_ISSUER: issuer and jwks_uri must be https in production',
    issuer === AUTH_URL && 'ADMIN_ISSUER: must not name AUTH_URL',
    agents.some((each) => each?.issuer === issuer && each.audience === audience) &&
      'ADMIN_ISSUER: must have another audience than the same issuer in TRUSTED_AGENT_ISSUERS',
    ...unknownFields('ADMIN_ISSUER', ADMIN_ISSUER, AdminIssuer),
  ].filter((violation) => violation !== false);
}

function cookieConflicts({ AUTH_URL, COOKIE_PREFIX, COOKIE_DOMAIN }: Configuration): string[] {
  if (!URL.canParse(AUTH_URL)) return []; // the rule of AUTH_URL reports it
  const { protocol, hostname } = new URL(AUTH_URL);
  const needsTls = /^__(secure|http)-/i.test(COOKIE_PREFIX);
  return [
    needsTls && protocol !== 'https:' && 'COOKIE_PREFIX: must not be __Secure- or __Http- unless AUTH_URL is https',
    !isCookieDomain(COOKIE_DOMAIN, hostname) &&
      'COOKIE_DOMAIN: must be host-only, the host of AUTH_URL, or a parent domain of it that is no public suffix',
  ].filter((violation) => violation !== false);
}

function sharedPorts({ PORT, MANAGEMENT_PORT, ADMIN_PORT }: Configuration): string[] {
  const violations: string[] = [];
  if (ADMIN_PORT && [PORT, MANAGEMENT_PORT].includes(ADMIN_PORT))
    violations.push('ADMIN_PORT: must differ from PORT and MANAGEMENT_PORT');
  return violations;
}

/** Variables that the process needs and that have no useful default. Called before the defaults are applied. */
function missingIn({
  NODE_ENV,
  PORT,
  AUTH_URL,
  DATABASE_URL = '',
  SIGNING_KEYS_FILE,
  unused,
}: Configuration): string[] {
  const isNeeded = (name: string, value: string | undefined) => !value && !unused.includes(name);
  return [
    NODE_ENV === 'production' &&
      isNeeded('AUTH_URL', AUTH_URL) &&
      'AUTH_URL: required in production; set it to the https URL at which callers reach the service',
    NODE_ENV !== 'production' &&
      PORT === 0 &&
      isNeeded('AUTH_URL', AUTH_URL) &&
      'AUTH_URL: required with PORT=0, because it contains the port by default',
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
  const authority =
    isShared(DATABASE_URL) && isDatabaseUrl(DATABASE_URL) ? new URL(DATABASE_URL).searchParams.get('ssl_ca') : null;
  return [
    production && !isConfidential(AUTH_URL) && 'AUTH_URL: must be https in production',
    production &&
      // the rule of the variable reports null
      !issuers.every((issuer) => isConfidential(issuer?.jwks_uri) && isConfidential(issuer?.issuer)) &&
      'TRUSTED_AGENT_ISSUERS: each issuer and jwks_uri must be https in production',
    issuers.some((each) => each?.issuer === AUTH_URL) && 'TRUSTED_AGENT_ISSUERS: must not name AUTH_URL',
    new Set(issuers.map((each) => each?.issuer)).size < issuers.length &&
      'TRUSTED_AGENT_ISSUERS: must name each issuer once',
    production &&
      TRY_IT === true &&
      !isLoopback(AUTH_URL) &&
      'TRY_IT: must not be true in production, unless the host of AUTH_URL is a loopback',
    PORT === MANAGEMENT_PORT && PORT !== 0 && 'MANAGEMENT_PORT: must differ from PORT',
    ...sharedPorts(configuration),
    ...issuers.flatMap((each, at) => unknownFields(`TRUSTED_AGENT_ISSUERS[${at}]`, each, TrustedIssuer)),
    ...adminIssuerConflicts(configuration, issuers),
    ...cookieConflicts(configuration),
    authority !== null &&
      !hasCertificate(authority) &&
      'DATABASE_URL: the file of ssl_ca has no certificate that can be read',
  ].filter((violation) => violation !== false);
}

function warningsOf(configuration: Configuration): string[] {
  const { REFRESH_TOKEN_TTL, CUSTOMER_TOKEN_TTL, AGENT_TOKEN_TTL, ADMIN_PORT, hasAdminTokens } = configuration;
  const { REGISTRY_FILE, MIGRATE_ON_START, embedded } = configuration;
  return [
    REFRESH_TOKEN_TTL < Math.max(CUSTOMER_TOKEN_TTL, AGENT_TOKEN_TTL) &&
      'REFRESH_TOKEN_TTL: a refresh token expires before the access token that it renews',
    REGISTRY_FILE !== undefined &&
      !MIGRATE_ON_START &&
      !embedded &&
      'REGISTRY_FILE: not applied without MIGRATE_ON_START; the command registry apply does it',
    ADMIN_PORT !== undefined && !hasAdminTokens && 'ADMIN_PORT: the port serves nothing without an admin token',
  ].filter((warning) => typeof warning === 'string');
}
