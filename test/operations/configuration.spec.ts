import 'reflect-metadata';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { parseAdminTokens } from '../../src/platform/configuration/admin-tokens.js';
import { withoutCredentials } from '../../src/platform/configuration/database-url.js';
import {
  ConfigurationError,
  DATABASE_VARIABLES,
  loadConfiguration,
  loadServiceConfiguration,
} from '../../src/platform/configuration/load-configuration.js';
import { temporaryFolder } from '../support/project-files.js';

// cspell:ignore AUTHURL DOMIAN TRUSTPROXY FLIE eexample scops

const folder = temporaryFolder('configuration');

const MYSQL = 'mysql://user:secret@db.example:3306/service';
const fileOf = (name: string, content: string) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

const violationsOf = (environment: Record<string, string>): string[] => {
  try {
    loadConfiguration(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    const { violations, message } = error as ConfigurationError;
    for (const violation of violations) expect(message).toContain(violation);
    expect(message).not.toContain('MARKED');
    return violations;
  }
  return [];
};

describe('protocol §9.4: configuration', () => {
  it('has a default for every variable, so that a first run needs none', () => {
    expect(loadConfiguration({})).toMatchObject({
      NODE_ENV: 'development',
      DATABASE_URL: 'sqlite:var/service.sqlite',
      embedded: true,
      DATA_DIR: './var',
      PORT: 3000,
      MANAGEMENT_PORT: 3001,
      AUTH_URL: 'http://localhost:3000',
      MIGRATE_ON_START: true,
      TOKEN_REGION: 'dev',
      CUSTOMER_TOKEN_TTL: 28_800,
      COOKIE_PREFIX: '__svc_',
      COOKIE_DOMAIN: 'localhost',
      COOKIE_PARTITIONED: true,
      TRY_IT: false,
      LOG_LEVEL: 'info',
    });
    expect(loadConfiguration({}).HOST).toBeUndefined();
    expect(loadConfiguration({}).REGISTRY_FILE).toBeUndefined();
  });

  it.each([
    [{ PORT: '8080' }, { AUTH_URL: 'http://localhost:8080' }],
    [{ PORT: '80' }, { AUTH_URL: 'http://localhost' }],
    [{ AUTH_URL: 'https://auth.example' }, { COOKIE_DOMAIN: 'auth.example' }],
    [{ AUTH_URL: 'https://auth.example:8443' }, { COOKIE_DOMAIN: 'auth.example' }],
    [{ AUTH_URL: 'https://auth.shop.example', COOKIE_DOMAIN: 'shop.example' }, { COOKIE_DOMAIN: 'shop.example' }],
    [{ NODE_ENV: ' production\n', AUTH_URL: 'https://auth.example' }, { NODE_ENV: 'production' }],
    [{ NODE_ENV: 'test' }, { NODE_ENV: 'test' }],
    [{ COOKIE_PARTITIONED: ' false' }, { COOKIE_PARTITIONED: false }],
    [{ LOG_LEVEL: 'warn ' }, { LOG_LEVEL: 'warn' }],
    [{ DATA_DIR: '/data ' }, { DATABASE_URL: 'sqlite:/data/service.sqlite' }],
    [{ DATA_DIR: '/data' }, { DATABASE_URL: 'sqlite:/data/service.sqlite' }],
    [
      { DATABASE_URL: MYSQL, SIGNING_KEYS_FILE: 'keys.json' },
      { MIGRATE_ON_START: false, embedded: false },
    ],
    [{ DATABASE_URL: MYSQL, SIGNING_KEYS_FILE: 'keys.json', MIGRATE_ON_START: 'true' }, { MIGRATE_ON_START: true }],
    [{ MIGRATE_ON_START: 'false' }, { MIGRATE_ON_START: false }],
    [{ COOKIE_PARTITIONED: 'false' }, { COOKIE_PARTITIONED: false }],
  ])('with %j contains %j', (environment, expected) => {
    expect(loadConfiguration(environment as unknown as Record<string, string>)).toMatchObject(expected);
  });

  it('treats an empty variable as not set, and ignores unknown variables', () => {
    expect(loadConfiguration({ PORT: '', HOST: '', REGISTRY_FILE: '', UNKNOWN: 'x' })).toEqual(loadConfiguration({}));
  });

  const accepted: Record<string, string[]> = {
    TRUST_PROXY: [
      '0',
      '2',
      '10.0.0.0/8',
      '127.0.0.1, ::1',
      'loopback',
      'loopback,uniquelocal',
      '::ffff:10.0.0.1',
      '::ffff:10.0.0.0/104',
    ],
  };
  it.each(Object.entries(accepted))('accepts values of %s', (name, values) => {
    for (const value of values) expect(loadConfiguration({ [name]: value })).toMatchObject({ [name]: value });
  });

  const rejected: Record<string, string[]> = {
    NODE_ENV: ['prod', 'PRODUCTION', 'staging', 'MARKED', 'production,test'],
    JWKS_DIR: ['MARKED', '.', '/MARKED', import.meta.filename],
    HOST: ['http://MARKED', '127.0.0.1:3000', '127.0.0.1,::1', '999.1.1.1', '*', '[::1]'],
    TRUST_PROXY: [
      ...['abc', '1.2.3', '10.0.0.0/99', '::1/129', '1.2.3.4,', '100', '-1', '00'],
      ...['0.0.0.0/0', '::/0', '10.0.0.0/8, 0.0.0.0/0', '10.0.0.1,10.0.0.1', '::ffff:0:0/96', '::ffff:0.0.0.0/96'],
    ],
    DATABASE_URL: [
      ...['postgres://MARKED@db.example/service', 'MARKED', 'sqlite:', 'sqlite', 'sqlite::memory:'],
      ...['sqlite://MARKED/service.sqlite', 'sqlite:MARKED?mode=ro', 'sqlite:MARKED#x'],
      ...['sqlite:file:MARKED', 'sqlite:http://MARKED', 'sqlite:libsql://MARKED'],
    ],
    PORT: ['MARKED', '-1', '65536', '3000.5', '0x50', '8e3', '3000,3001'],
    MANAGEMENT_PORT: ['MARKED', '3000', '1e3'],
    ADMIN_PORT: ['65536', '3000', '3001', '1e3'],
    DB_POOL_SIZE: ['0', '1', '1001', 'MARKED', '1e2', '0x10', '+10', '10.0'],
    AUTH_URL: [
      'MARKED',
      'auth.example',
      'ftp://auth.example',
      'https://auth.example/',
      'https://auth.example/MARKED',
      'https://auth.example?MARKED',
      'https://user:MARKED@auth.example',
      'https://AUTH.example',
      'https://auth.example:443',
      'https://auth.example:0',
      'https://auth.example.',
      'https://auth..example',
      'https://*.example',
      'https://-auth.example',
    ],
    MIGRATE_ON_START: ['yes', '1'],
    TRY_IT: ['yes', '1'],
    TOKEN_REGION: ['with space', 'colon:', 'x'.repeat(17)],
    CUSTOMER_TOKEN_TTL: ['0', '-1', '1.5', 'MARKED', '99999999', '8h', '28,800', '1e3'],
    RATE_LIMIT: ['OFF', 'tokens=1/60,tokens=2/60', 'identities=0/60', 'MARKED'],
    OTEL_EXPORTER_OTLP_ENDPOINT: [
      ...['collector:4318', 'grpc://collector:4317', 'http://user:MARKED@collector:4318', 'http://collector:0'],
      ...['http://collector:4318?MARKED', 'http://collector:4318#MARKED', 'http://collector:4318/v1/traces'],
      'http://one:4318,http://two:4318',
    ],
    OTEL_TRACES_SAMPLER_ARG: ['1.1', '2', '-0.1', '.5', '50%', 'MARKED'],
    AUDIT_TOKEN_ISSUED_ONE_OF: ['-1', '1.5', '1000001', 'MARKED'],
    COOKIE_PREFIX: ['with space', 'semi;colon', '__Host-', '__host-x', '__HOST-', '__Host-Http-', '__HostHttp-'],
    COOKIE_DOMAIN: ['localhost; HttpOnly', 'localhost/path', 'other.example', '.localhost', 'LOCALHOST', 'Host-Only'],
    COOKIE_PARTITIONED: ['MARKED'],
    LOG_LEVEL: ['MARKED'],
  };
  it.each(Object.entries(rejected))('rejects values of %s by an error with the rule, not the value', (name, values) => {
    for (const value of values) {
      const violations = violationsOf({ [name]: value });
      expect(violations, value).not.toEqual([]);
      for (const violation of violations) expect(violation).toMatch(new RegExp(`^${name}: must .{5}`));
    }
  });

  it.each([
    'NODE_ENV',
    ...['DATABASE_URL', 'DATA_DIR', 'PORT', 'AUTH_URL', 'TOKEN_REGION', 'ADMIN_TOKENS', 'TRUST_PROXY', 'COOKIE_DOMAIN'],
  ])('rejects white space as the value of %s', (name) => {
    expect(violationsOf({ [name]: ' \t' })).toContain(`${name}: is only white space`);
  });

  it.each([
    ['https://auth.shop.example', ['auth.shop.example', 'shop.example', 'host-only']],
    ['https://a.b.shop.co.uk', ['b.shop.co.uk', 'shop.co.uk']],
    ['https://auth.acme.corp', ['acme.corp']],
    ['https://acme.github.io', ['acme.github.io']],
    ['https://intranet', ['intranet']],
    ['http://127.0.0.1:3000', ['127.0.0.1']],
    ['http://[::1]:3000', ['[::1]']],
  ])('accepts the host of AUTH_URL and its parents as COOKIE_DOMAIN: %s', (AUTH_URL, domains) => {
    for (const COOKIE_DOMAIN of domains)
      expect(loadConfiguration({ AUTH_URL, COOKIE_DOMAIN })).toMatchObject({ COOKIE_DOMAIN });
  });

  it.each([
    ['https://auth.shop.example', ['other.example', 'hop.example', 'a.auth.shop.example', 'example']],
    [
      'https://auth.shop.example',
      ['.shop.example', 'shop.example.', 'Shop.example', 'shop.example:443', '*.shop.example'],
    ],
    ['https://auth.shop.example', ['https://shop.example', 'shop.example,auth.shop.example', 'none', '.']],
    ['https://auth.shop.co.uk', ['co.uk', 'uk']],
    ['https://acme.github.io', ['github.io', 'io']],
    ['https://auth.company', ['company']],
    ['http://shop.localhost:3000', ['localhost']],
    ['http://127.0.0.1:3000', ['0.0.1', '1', 'localhost']],
    ['http://[::1]:3000', ['::1', ':1]', '1]']],
  ])(
    'rejects other hosts and public suffixes as COOKIE_DOMAIN, with which browsers drop the cookies: %s',
    (AUTH_URL, domains) => {
      for (const COOKIE_DOMAIN of domains)
        expect(violationsOf({ AUTH_URL, COOKIE_DOMAIN }), COOKIE_DOMAIN).toEqual([
          'COOKIE_DOMAIN: must be host-only, the host of AUTH_URL, or a parent domain of it that is no public suffix',
        ]);
    },
  );

  it.each(['__Secure-', '__secure-x', '__Http-'])('accepts COOKIE_PREFIX=%s only with https', (COOKIE_PREFIX) => {
    expect(violationsOf({ AUTH_URL: 'https://auth.example', COOKIE_PREFIX })).toEqual([]);
    for (const AUTH_URL of ['http://auth.example', 'http://localhost:3000'])
      expect(violationsOf({ AUTH_URL, COOKIE_PREFIX })).toEqual([
        'COOKIE_PREFIX: must not be __Secure- or __Http- unless AUTH_URL is https',
      ]);
  });

  it.each(['0', ' 0', '00'])(
    'requires AUTH_URL with PORT=%j, unless the process has chosen a port before',
    async (PORT) => {
      expect(violationsOf({ PORT })).toEqual([expect.stringMatching(/^AUTH_URL: required with PORT=0/)]);
      const AUTH_URL = 'https://auth.example';
      expect(loadConfiguration({ PORT, AUTH_URL })).toMatchObject({ PORT: 0, AUTH_URL });
      expect(await loadServiceConfiguration({ PORT, AUTH_URL })).toMatchObject({ PORT: 0, AUTH_URL });
    },
  );

  it('chooses a free port for PORT=0 without AUTH_URL, because the issuer contains it', async () => {
    const { PORT, AUTH_URL } = await loadServiceConfiguration({ PORT: '0 ' });
    expect(PORT).toBeGreaterThan(0);
    expect(AUTH_URL).toBe(`http://localhost:${PORT}`);
  });

  it('rejects an empty file of a variable, except for the tokens of operators, whose files are followed', () => {
    for (const name of ['DATABASE_URL', 'AUTH_URL', 'TOKEN_REGION'])
      expect(violationsOf({ [`${name}_FILE`]: fileOf('empty', ' \n') })).toEqual([`${name}_FILE: the file is empty`]);
    expect(loadConfiguration({ ADMIN_TOKENS_FILE: fileOf('empty', '') }).hasAdminTokens).toBe(true);
  });

  it.each([
    ...['AUTH_ULR', 'AUT_URL', 'AUTH__URL', 'AUTHURL', 'auth_url', 'Auth-Url', 'AUTH_URLS', 'AUTH_IRL', '_AUTH_URL'],
    ...['COOKIE_DOMIAN', 'TRUSTPROXY', 'DATABASE_URI', 'SIGNING_KEY_FILE', 'ADMIN_TOKENS_FLIE', 'NODE_EVN', 'POR'],
  ])('warns of %s, whose name is at most one letter away from a variable', (name) => {
    const { warnings } = loadConfiguration({ [name]: 'MARKED' });
    expect(warnings).toEqual([
      expect.stringMatching(new RegExp(`^${name}: not a variable of the service; [A-Z_]+ is$`)),
    ]);
  });

  it('warns of no variable that is known, empty or not similar', () => {
    const other = { PATH: '/bin', HOME: '/root', HOSTNAME: 'pod', AUTH_UL_X: '1', TRUST: '1', SERVICE_PORT: '1' };
    const known = { PORT: '3000', TOKEN_REGION_FILE: fileOf('region', 'eu'), AUTH_ULR: '' };
    expect(loadConfiguration({ ...other, ...known }).warnings).toEqual([]);
  });

  it.each([
    ['a refresh token that expires before the access token', { REFRESH_TOKEN_TTL: '3600' }],
    ['a port of the admin API without a token', { ADMIN_PORT: '3002' }],
  ])('warns of %s', (_, environment) => {
    const [name] = Object.keys(environment);
    expect(loadConfiguration(environment).warnings).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
  });

  it.each(['mysql', 'mariadb'])('rejects a malformed URL of %s', (protocol) => {
    const SIGNING_KEYS_FILE = 'keys.json';
    for (const rest of [
      '',
      '//',
      '///service',
      '//db.example',
      '//db.example/',
      '//db.example/one/two',
      '//db.example:MARKED/service',
      '//db.example:65536/service',
      '//user:MARKED%@db.example/service',
      '//user:%zz@db.example/service',
      // with `URL`, each of these has another host than the operator meant, or drops a part
      '//user:1#MARKED@db.example/service',
      '//user:MARKED#x@db.example/service',
      '//user:1?MARKED@db.example/service',
      '//user:1?ssl=true@db.example/service',
      '//user:1/MARKED@db.example/service',
      '//user:1/MARKED@db.example',
      '//user:1\\MARKED@db.example/service',
      '//user:MARKED@x@db.example/service',
      '//user:MARKED\t@db.example/service',
      '//user:MARKED\n@db.example/service',
      '//user:MARKED @db.example/service',
      '//user:%ff@db.example/service',
      '//user:100%@db.example/service',
      '//:MARKED@db.example/service',
      '//@db.example/service',
      '//user:MARKED@/service',
      '//user:MARKED@:3306/service',
      '//user:MARKED@one,two/service',
      '//user:MARKED@db%2eexample/service',
      '//db.example:0/service',
      '//db.example/service#MARKED',
      '//db.example/service@MARKED',
      '//db.example/%zz',
      '//db.example/service?sslmode=MARKED',
      '//db.example/service?ssl=true&ssl=false',
      '//db.example/service?ssl=true#MARKED',
      '//db.example/service?ssl=false&ssl_ca=MARKED',
      '//db.example/service?ssl_ca=',
    ]) {
      const violations = violationsOf({ DATABASE_URL: `${protocol}:${rest}`, SIGNING_KEYS_FILE });
      expect({ rest, violations }).toEqual({ rest, violations: [expect.stringMatching(/^DATABASE_URL: must be /)] });
    }
    for (const rest of ['//db/service', '//u:p@db.example:3306/service', '//u:%2F%40@[::1]:1/s?ssl=true']) {
      expect(violationsOf({ DATABASE_URL: `${protocol}:${rest}`, SIGNING_KEYS_FILE })).toEqual([]);
    }
  });

  it.each(['MARKED', '{}', '[null]', '[7]', '["MARKED"]', '[{}]', '[[]]', '[[{}]]'])(
    'names TRUSTED_AGENT_ISSUERS in each violation of its rules, in production too: %s',
    (TRUSTED_AGENT_ISSUERS) => {
      const production = { NODE_ENV: 'production', AUTH_URL: 'https://auth.example' };
      for (const environment of [{}, production]) {
        const violations = violationsOf({ ...environment, TRUSTED_AGENT_ISSUERS });
        expect(violations).not.toEqual([]);
        for (const violation of violations) expect(violation).toMatch(/^TRUSTED_AGENT_ISSUERS\b/);
      }
    },
  );

  it('rejects two entries of TRUSTED_AGENT_ISSUERS with the same issuer', () => {
    const entry = {
      ...{ issuer: 'https://sso.example', jwks_uri: 'https://sso.example/keys', audience: 'a', algorithms: ['ES256'] },
      ...{ typ: 'at+jwt', organizations: ['o'], scopes: ['customers:own'], organization_claim: 'org' },
    };
    const of = (...entries: object[]) => violationsOf({ TRUSTED_AGENT_ISSUERS: JSON.stringify(entries) });
    expect(of(entry, { ...entry, issuer: 'https://other.example' })).toEqual([]);
    expect(of(entry, { ...entry, audience: 'b' })).toEqual(['TRUSTED_AGENT_ISSUERS: must name each issuer once']);
  });

  const SSO = {
    ...{ issuer: 'https://sso.example', jwks_uri: 'https://sso.example/keys?p=1', audience: 'a', typ: 'at+jwt' },
    ...{ algorithms: ['ES256'], organizations: ['o'] },
  };

  it.each([
    { issuer: 'https://user:MARKED@sso.example' },
    { issuer: 'https://sso.example#MARKED' },
    { issuer: 'https://sso.example?MARKED' },
    { jwks_uri: 'https://user:MARKED@sso.example/keys' },
    { jwks_uri: 'https://sso.example/keys#MARKED' },
    ...[{ audience: ' ' }, { typ: '' }, { organizations: [''] }, { organizations: ['o', 'o'] }],
    ...[{ algorithms: ['HS256'] }, { algorithms: ['ES256', 'ES256'] }, { scopes: [] }, { scopes: ['a b'] }],
    ...[{ organization_claim: '' }, { scope_claim: ' ' }, { scops: ['MARKED'] }, { audiences: 'MARKED' }],
  ])('rejects an entry of TRUSTED_AGENT_ISSUERS with %j', (field) => {
    const of = (entry: object) => violationsOf({ TRUSTED_AGENT_ISSUERS: JSON.stringify([entry]) });
    expect(of(SSO)).toEqual([]);
    const [name] = Object.keys(field);
    expect(of({ ...SSO, ...field })).toEqual([
      expect.stringMatching(new RegExp(`^TRUSTED_AGENT_ISSUERS\\[0\\]\\.${name}: `)),
    ]);
  });

  it('rejects AUTH_URL as a trusted issuer, and issuers without TLS in production', () => {
    const of = (entry: object, more: object) =>
      violationsOf({ AUTH_URL: 'https://auth.example', TRUSTED_AGENT_ISSUERS: JSON.stringify([entry]), ...more });
    expect(of({ ...SSO, issuer: 'https://auth.example' }, {})).toEqual([
      'TRUSTED_AGENT_ISSUERS: must not name AUTH_URL',
    ]);
    for (const name of ['issuer', 'jwks_uri']) {
      const entry = { ...SSO, [name]: 'http://sso.example' };
      expect(of(entry, {})).toEqual([]);
      expect(of(entry, { NODE_ENV: 'production' })).toEqual([
        'TRUSTED_AGENT_ISSUERS: each issuer and jwks_uri must be https in production',
      ]);
    }
  });

  const ADMIN = {
    ...{ issuer: 'https://sso.example', jwks_uri: 'https://sso.example/keys', audience: 'admin', typ: 'at+jwt' },
    ...{ algorithms: ['ES256'] },
  };
  const ofAdminIssuer = (entry: object, more: Record<string, string> = {}) =>
    violationsOf({ AUTH_URL: 'https://auth.example', ADMIN_ISSUER: JSON.stringify(entry), ...more });

  it('accepts ADMIN_ISSUER, with which the admin API exists', () => {
    expect(ofAdminIssuer(ADMIN)).toEqual([]);
    const configuration = loadConfiguration({ ADMIN_ISSUER: JSON.stringify(ADMIN) });
    expect(configuration).toMatchObject({ hasAdminTokens: true, ADMIN_ISSUER: { ...ADMIN, role_claim: 'role' } });
  });

  it.each(['MARKED', 'null', '7', '[]', '[{}]', '"MARKED"'])('rejects ADMIN_ISSUER as %s', (ADMIN_ISSUER) => {
    expect(violationsOf({ ADMIN_ISSUER })).toEqual(['ADMIN_ISSUER: must be a JSON object']);
  });

  it.each([
    ...[{ issuer: undefined }, { issuer: 'https://user:MARKED@sso.example' }, { jwks_uri: 'file:///MARKED' }],
    ...[{ audience: '' }, { audience: ['MARKED'] }, { algorithms: ['HS256'] }, { algorithms: ['none'] }],
    ...[{ algorithms: [] }, { typ: ' ' }, { role_claim: '' }, { organizations: ['MARKED'] }],
  ])('rejects ADMIN_ISSUER with %j', (field) => {
    const [name] = Object.keys(field);
    const violations = ofAdminIssuer({ ...ADMIN, ...field });
    expect(violations).not.toEqual([]);
    for (const violation of violations) expect(violation).toMatch(new RegExp(`^ADMIN_ISSUER\\.${name}: `));
  });

  it('rejects ADMIN_ISSUER with AUTH_URL, without TLS in production, and with the audience of agents', () => {
    expect(ofAdminIssuer({ ...ADMIN, issuer: 'https://auth.example' })).toEqual([
      'ADMIN_ISSUER: must not name AUTH_URL',
    ]);
    for (const name of ['issuer', 'jwks_uri'])
      expect(ofAdminIssuer({ ...ADMIN, [name]: 'http://sso.example' }, { NODE_ENV: 'production' })).toEqual([
        'ADMIN_ISSUER: issuer and jwks_uri must be https in production',
      ]);
    const TRUSTED_AGENT_ISSUERS = JSON.stringify([SSO]);
    expect(ofAdminIssuer(ADMIN, { TRUSTED_AGENT_ISSUERS })).toEqual([]);
    expect(ofAdminIssuer({ ...ADMIN, audience: SSO.audience }, { TRUSTED_AGENT_ISSUERS })).toEqual([
      'ADMIN_ISSUER: must have another audience than the same issuer in TRUSTED_AGENT_ISSUERS',
    ]);
  });

  it('rejects a file of certificate authorities that is missing or has no certificate', () => {
    const environment = { SIGNING_KEYS_FILE: 'keys.json', DATABASE_URL: `${MYSQL}?ssl_ca=` };
    const with_ = (path: string) =>
      violationsOf({ ...environment, DATABASE_URL: `${environment.DATABASE_URL}${path}` });
    expect(with_('/MARKED.pem')).toEqual([expect.stringMatching(/^DATABASE_URL: .*ssl_ca/)]);
    for (const content of ['', 'MARKED', '-----BEGIN CERTIFICATE-----\nMARKED\n-----END CERTIFICATE-----\n'])
      expect(with_(fileOf('ca.pem', content))).toEqual([expect.stringMatching(/^DATABASE_URL: .*ssl_ca/)]);
    expect(with_(folder)).toEqual([expect.stringMatching(/^DATABASE_URL: .*ssl_ca/)]);
    expect(with_(fileOf('ca.pem', rootCertificates[0] as string))).toEqual([]);
  });

  it.each(['mysql', 'mariadb'])(
    'requires SIGNING_KEYS_FILE for %s, and names the command that generates the file',
    (protocol) => {
      const violations = violationsOf({ DATABASE_URL: `${protocol}://user:MARKED@db.example/service` });
      expect(violations).toEqual([expect.stringMatching(/^SIGNING_KEYS_FILE: .*node dist\/cli\.js keys generate/)]);
    },
  );

  it.each([
    ['http://auth.example', false],
    ['http://auth.localhost.example', false],
    ['http://127.0.0.1.example', false],
    ['https://auth.example', true],
    ['http://localhost:3000', true],
    ['http://127.0.0.1:3000', true],
    ['http://[::1]:3000', true],
  ])('requires https for AUTH_URL in production, except for loopback hosts: %s', (AUTH_URL, accepted) => {
    const violations = violationsOf({ NODE_ENV: 'production', AUTH_URL });
    expect(violations).toEqual(accepted ? [] : ['AUTH_URL: must be https in production']);
    expect(violationsOf({ AUTH_URL })).toEqual([]);
  });

  it.each([
    ['https://auth.example', false],
    ['https://localhost.example', false],
    ['http://localhost:3000', true],
    ['https://127.0.0.1', true],
    ['http://[::1]:3000', true],
  ])('forbids TRY_IT in production, except for loopback hosts: %s', (AUTH_URL, accepted) => {
    const violation = 'TRY_IT: must not be true in production, unless the host of AUTH_URL is a loopback';
    expect(violationsOf({ NODE_ENV: 'production', AUTH_URL, TRY_IT: 'true' })).toEqual(accepted ? [] : [violation]);
    expect(violationsOf({ NODE_ENV: 'production', AUTH_URL, TRY_IT: 'false' })).toEqual([]);
    expect(loadConfiguration({ AUTH_URL, TRY_IT: 'true' }).TRY_IT).toBe(true);
  });

  it('requires AUTH_URL in production, because the default is the machine of the process', () => {
    expect(violationsOf({ NODE_ENV: 'production' })).toEqual([
      'AUTH_URL: required in production; set it to the https URL at which callers reach the service',
    ]);
    const production = (AUTH_URL_FILE: string) => violationsOf({ NODE_ENV: 'production', AUTH_URL_FILE });
    expect(production(fileOf('auth-url', 'https://auth.example'))).toEqual([]);
    expect(production('/MARKED')).toEqual(['AUTH_URL_FILE: the file cannot be read']);
  });

  it('neither reads nor requires a variable that a command does not use', () => {
    const unused = { SIGNING_KEYS_FILE: '/MARKED', ADMIN_TOKENS: 'x', AUTH_URL_FILE: '/MARKED', PORT: 'MARKED' };
    const used = { NODE_ENV: 'production', DATABASE_URL: MYSQL, DB_POOL_SIZE: '4' };
    const configuration = loadConfiguration({ ...unused, ...used }, DATABASE_VARIABLES);
    expect(configuration).toMatchObject({ DATABASE_URL: MYSQL, DB_POOL_SIZE: 4, PORT: 3000 });
    expect(configuration.ADMIN_TOKENS).toBeUndefined();
    expect(() => loadConfiguration({ DATABASE_URL: 'MARKED' }, DATABASE_VARIABLES)).toThrow(/DATABASE_URL/);
  });

  it('reports all violations of all kinds at once', () => {
    const violations = violationsOf({
      NODE_ENV: 'production',
      AUTH_URL: 'http://auth.example',
      DATABASE_URL: MYSQL,
      LOG_LEVEL: 'MARKED',
      PORT: '3001',
      TOKEN_REGION: 'x',
      TOKEN_REGION_FILE: '/MARKED',
      COOKIE_PREFIX_FILE: '/MARKED',
    });
    expect(violations.map((violation) => violation.split(':')[0]).sort()).toEqual([
      'AUTH_URL',
      'COOKIE_PREFIX_FILE',
      'LOG_LEVEL',
      'MANAGEMENT_PORT',
      'SIGNING_KEYS_FILE',
      'TOKEN_REGION',
    ]);
  });

  describe('NAME_FILE', () => {
    it('is the path of a file with the value, and white space around the value is ignored', () => {
      const TOKEN_REGION_FILE = fileOf('region', ' eu-west \r\n');
      const DATABASE_URL_FILE = fileOf('url', `${MYSQL}\n`);
      const configuration = loadConfiguration({ TOKEN_REGION_FILE, DATABASE_URL_FILE, SIGNING_KEYS_FILE: 'keys.json' });
      expect(configuration).toMatchObject({ TOKEN_REGION: 'eu-west', DATABASE_URL: MYSQL });
    });

    it('is ignored if its own value is empty', () => {
      expect(loadConfiguration({ TOKEN_REGION_FILE: '', TOKEN_REGION: 'eu' }).TOKEN_REGION).toBe('eu');
      expect(loadConfiguration({ TOKEN_REGION_FILE: fileOf('region', 'eu'), TOKEN_REGION: '' }).TOKEN_REGION).toBe(
        'eu',
      );
    });

    it.each(['/MARKED/nothing', folder])('is rejected if the file cannot be read: %s', (LOG_LEVEL_FILE) => {
      expect(violationsOf({ LOG_LEVEL_FILE })).toEqual(['LOG_LEVEL_FILE: the file cannot be read']);
    });

    it('is rejected if the value itself is set too', () => {
      const violations = violationsOf({ LOG_LEVEL: 'info', LOG_LEVEL_FILE: fileOf('level', 'MARKED') });
      expect(violations).toEqual(['LOG_LEVEL: given twice, also as LOG_LEVEL_FILE']);
    });

    it('may provide the value of SIGNING_KEYS_FILE, which is a variable itself like REGISTRY_FILE', () => {
      const SIGNING_KEYS_FILE_FILE = fileOf('path', '/secrets/keys.json\n');
      const configuration = loadConfiguration({ SIGNING_KEYS_FILE_FILE, REGISTRY_FILE: '/registry.yaml' });
      expect(configuration).toMatchObject({ SIGNING_KEYS_FILE: '/secrets/keys.json', REGISTRY_FILE: '/registry.yaml' });
    });
  });
});

describe('protocol §9.4: ADMIN_TOKENS', () => {
  const first = 'first-token-with-at-least-32-characters';
  const second = 'second-token:with-at-least-32-characters';

  it.each([
    `alice:all:${first}`,
    `alice:read:${first},bob:registry:${second}`,
    ` alice:support:${first} , alice-2:support:${second} `,
    `alice:all:${first}\nbob:read:${second}\n\n`,
    `alice:all:${first}\r\nbob:read:${second},`,
    `alice:all:${'x'.repeat(1_024)}`,
  ])('may be %j', (ADMIN_TOKENS) => {
    const expected = { ADMIN_TOKENS: ADMIN_TOKENS.trim(), hasAdminTokens: true };
    expect(loadConfiguration({ ADMIN_TOKENS })).toMatchObject(expected);
  });

  it('may be a file with a line for each token, which may contain colons', () => {
    const ADMIN_TOKENS_FILE = fileOf('admin-tokens', `alice:all:${first}\nbob:read:${second}:\n`);
    const { ADMIN_TOKENS } = loadConfiguration({ ADMIN_TOKENS_FILE });
    expect(parseAdminTokens(String(ADMIN_TOKENS))).toEqual([
      { name: 'alice', role: 'all', token: first },
      { name: 'bob', role: 'read', token: `${second}:` },
    ]);
  });

  const LIST = 'must be 1 to 100 entries of the form name:role:token';
  const NAMES = 'must be name:role:token entries, each with a name of 1 to 64 letters, digits or . _ -';
  const ROLES = 'must have the role read, registry, support, all in each entry';
  const TOKENS = 'must have tokens of 32 to 1024 printable ASCII characters without spaces';

  it.each([
    [',', LIST],
    [Array.from({ length: 101 }, (_, at) => `n${at}:all:${at}${first}`).join(), LIST],
    [`alice:all:${first}${',\n'.repeat(65_536)}`, 'must have at most 131072 bytes'],
    ['MARKED-token-without-a-name-of-32-characters', NAMES],
    [`alice:${first}`, NAMES],
    [`:all:${first}`, NAMES],
    [`al ice:all:${first}`, NAMES],
    [`${'a'.repeat(65)}:all:${first}`, NAMES],
    ['alice:all:', NAMES],
    [`alice:smith:all:${first}`, ROLES],
    [`alice::${first}`, ROLES],
    [`alice:All:${first}`, ROLES],
    [`alice:read :${first}`, ROLES],
    [`alice:read+support:${first}`, ROLES],
    [`alice:constructor:${first}`, ROLES],
    ['alice:all:MARKED-token-of-31-characters--', TOKENS],
    [`alice:all:${'x'.repeat(1_025)}`, TOKENS],
    [`alice:all:MARKED ${first}`, TOKENS],
    [`alice:all:MARKED-é${first}`, TOKENS],
    [`alice:all:${first},alice:all:${second}`, 'must not have a name twice; use two names to rotate a token'],
    [`alice:read:${first},alice:all:${second}`, 'must not have a name twice; use two names to rotate a token'],
    [`alice:read:${first},bob:all:${first}`, 'must not have a token twice'],
  ])('must not be %j', (ADMIN_TOKENS, rule) => {
    expect(violationsOf({ ADMIN_TOKENS })).toEqual([`ADMIN_TOKENS: ${rule}`]);
  });
});

it('a database URL in a message has no credentials and options, and the path of SQLite is absolute', () => {
  expect(withoutCredentials(`${MYSQL}?ssl=true`)).toBe('mysql://db.example:3306/service');
  expect(withoutCredentials('sqlite:var/service.sqlite')).toBe(`sqlite:${join(process.cwd(), 'var/service.sqlite')}`);
});
