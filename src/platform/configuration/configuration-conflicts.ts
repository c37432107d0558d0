import { statSync } from 'node:fs';
import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import type { Type } from '@nestjs/common';
import { loadWhenUsed } from '../load-when-used.js';
import { isLoopback } from '../validation/url-rules.js';
import { declaredProperties } from '../validation/validation.js';
import { UNKNOWN_FIELD } from '../validation/violations.js';
import type { Configuration } from './configuration.js';
import { hasCertificate, isDatabaseUrl } from './database-url.js';
import { AdminIssuer, TrustedIssuer } from './issuers.js';

const reported = (...texts: (string | false)[]) => texts.filter((text) => text !== false);

/** Variables that the process needs and that have no useful default. Called before the defaults are applied. */
export function missingIn(configuration: Configuration): string[] {
  const { NODE_ENV, PORT, AUTH_URL, DATABASE_URL = '', SIGNING_KEYS_FILE, unused } = configuration;
  const needsUrl = !AUTH_URL && !unused.includes('AUTH_URL');
  const needsKeys = !SIGNING_KEYS_FILE && !unused.includes('SIGNING_KEYS_FILE');
  const isProduction = NODE_ENV === 'production';
  return reported(
    isProduction &&
      needsUrl &&
      'AUTH_URL: required in production; set it to the https URL at which callers reach the service',
    !isProduction &&
      PORT === 0 &&
      needsUrl &&
      'AUTH_URL: required with PORT=0, because it contains the port by default',
    isShared(DATABASE_URL) &&
      needsKeys &&
      'SIGNING_KEYS_FILE: required with MySQL and MariaDB, because all processes must use the same keys; create the file with: node dist/cli.js keys generate > keys.json',
  );
}

/** What the rule of a single variable cannot see. A value that its own rule reports is not reported again. */
export function conflictsIn(configuration: Configuration): string[] {
  const { AUTH_URL, NODE_ENV, PORT, MANAGEMENT_PORT, ADMIN_PORT = 0, TRUSTED_AGENT_ISSUERS, TRY_IT } = configuration;
  const { JWKS_DIR } = configuration;
  const isProduction = NODE_ENV === 'production';
  // an entry may be null
  const issuers: (TrustedIssuer | null)[] = Array.isArray(TRUSTED_AGENT_ISSUERS) ? TRUSTED_AGENT_ISSUERS : [];
  const names = issuers.map((entry) => entry?.issuer);
  return [
    ...reported(
      isProduction && !isConfidential(AUTH_URL) && 'AUTH_URL: must be https in production',
      isProduction &&
        !issuers.every(isConfidentialIssuer) &&
        'TRUSTED_AGENT_ISSUERS: each issuer and jwks_uri must be https in production',
      names.includes(AUTH_URL) && 'TRUSTED_AGENT_ISSUERS: must not name AUTH_URL',
      new Set(names).size < names.length && 'TRUSTED_AGENT_ISSUERS: must name each issuer once',
      isProduction &&
        TRY_IT === true &&
        !isLoopback(urlOf(AUTH_URL)) &&
        'TRY_IT: must not be true in production, unless the host of AUTH_URL is a loopback',
      JWKS_DIR !== undefined && !isFolder(JWKS_DIR) && 'JWKS_DIR: must be the absolute path of a folder',
      PORT === MANAGEMENT_PORT && PORT !== 0 && 'MANAGEMENT_PORT: must differ from PORT',
      ADMIN_PORT !== 0 &&
        [PORT, MANAGEMENT_PORT].includes(ADMIN_PORT) &&
        'ADMIN_PORT: must differ from PORT and MANAGEMENT_PORT',
    ),
    ...issuers.flatMap((entry, at) => unknownFields(`TRUSTED_AGENT_ISSUERS[${at}]`, entry, TrustedIssuer)),
    ...adminIssuerConflicts(configuration, issuers),
    ...cookieConflicts(configuration),
    ...databaseConflicts(configuration),
  ];
}

function adminIssuerConflicts(
  { ADMIN_ISSUER, AUTH_URL, NODE_ENV }: Configuration,
  agentIssuers: (TrustedIssuer | null)[],
): string[] {
  if (!(ADMIN_ISSUER instanceof AdminIssuer)) return [];
  const { issuer, audience } = ADMIN_ISSUER;
  return [
    ...reported(
      NODE_ENV === 'production' &&
        !isConfidentialIssuer(ADMIN_ISSUER) &&
        'ADMIN_ISSUER: issuer and jwks_uri must be https in production',
      issuer === AUTH_URL && 'ADMIN_ISSUER: must not name AUTH_URL',
      agentIssuers.some((entry) => entry?.issuer === issuer && entry.audience === audience) &&
        'ADMIN_ISSUER: must have another audience than the same issuer in TRUSTED_AGENT_ISSUERS',
    ),
    ...unknownFields('ADMIN_ISSUER', ADMIN_ISSUER, AdminIssuer),
  ];
}

function cookieConflicts({ AUTH_URL, COOKIE_PREFIX, COOKIE_DOMAIN }: Configuration): string[] {
  if (!URL.canParse(AUTH_URL)) return [];
  const { protocol, hostname } = new URL(AUTH_URL);
  return reported(
    /^__(secure|http)-/i.test(COOKIE_PREFIX) &&
      protocol !== 'https:' &&
      'COOKIE_PREFIX: must not be __Secure- or __Http- unless AUTH_URL is https',
    !isCookieDomain(COOKIE_DOMAIN, hostname) &&
      'COOKIE_DOMAIN: must be host-only, the host of AUTH_URL, or a parent domain of it that is no public suffix',
  );
}

function databaseConflicts({ DATABASE_URL }: Configuration): string[] {
  if (!isShared(DATABASE_URL) || !isDatabaseUrl(DATABASE_URL)) return [];
  const file = new URL(DATABASE_URL).searchParams.get('ssl_ca');
  return reported(
    file !== null && !hasCertificate(file) && 'DATABASE_URL: the file of ssl_ca has no certificate that can be read',
  );
}

/** What an operator may not have meant. */
export function warningsOf(configuration: Configuration): string[] {
  const { REFRESH_TOKEN_TTL, CUSTOMER_TOKEN_TTL, AGENT_TOKEN_TTL, ADMIN_PORT, hasAdminTokens } = configuration;
  const { REGISTRY_FILE, MIGRATE_ON_START, embedded } = configuration;
  return reported(
    REFRESH_TOKEN_TTL < Math.max(CUSTOMER_TOKEN_TTL, AGENT_TOKEN_TTL) &&
      'REFRESH_TOKEN_TTL: a refresh token expires before the access token that it renews',
    REGISTRY_FILE !== undefined &&
      !MIGRATE_ON_START &&
      !embedded &&
      'REGISTRY_FILE: not applied without MIGRATE_ON_START; the command registry apply does it',
    ADMIN_PORT !== undefined && !hasAdminTokens && 'ADMIN_PORT: the port serves nothing without an admin token',
  );
}

const isShared = (databaseUrl: string) => /^(mysql|mariadb):/.test(databaseUrl);

/** Parses a URL. An invalid one becomes that of this machine, because the rule of its variable reports it already. */
export function urlOf(text: string): URL {
  return new URL(URL.canParse(text) ? text : 'http://localhost');
}

function isFolder(path: string): boolean {
  try {
    return isAbsolute(path) && statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** Whether requests cannot be read on their way. */
const isConfidential = (url: string) => urlOf(url).protocol === 'https:' || isLoopback(urlOf(url));

const isConfidentialIssuer = (issuer: AdminIssuer | TrustedIssuer | null) =>
  issuer === null || (isConfidential(issuer.issuer) && isConfidential(issuer.jwks_uri));

/** Fields that have no effect, for example because their names are misspelled. */
function unknownFields(path: string, issuer: object | null, type: Type): string[] {
  const known = declaredProperties(type);
  return Object.keys(issuer instanceof type ? (issuer as object) : {})
    .filter((field) => !known.includes(field))
    .map((field) => `${path}.${field}: ${UNKNOWN_FIELD}`);
}

/**
 * A browser stores no cookie whose `Domain` is neither the host nor a registrable parent domain of it (RFC 6265 §5.3).
 */
function isCookieDomain(domain: string, host: string): boolean {
  if (domain === 'host-only' || domain === host) return true;
  return host.endsWith(`.${domain}`) && isIP(host) === 0 && !isPublicSuffix(domain);
}

/**
 * Includes the suffixes of hosting companies, as in browsers. A last label that the list does not contain is one too.
 */
function isPublicSuffix(domain: string): boolean {
  const { getPublicSuffix } = loadWhenUsed<typeof import('tldts')>('tldts');
  return getPublicSuffix(domain, { allowPrivateDomains: true }) === domain;
}
