// @ts-check
/** The data of all benchmarks: a site with customers. The service has its default production configuration. */
import { execFileSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importJWK, SignJWT } from 'jose';

export const ORGANIZATION = '390e44e6-f1e6-4368-86dd-b74514508c2e';
export const CLIENT = 'site';
/** The origin of the client's pages. */
export const ORIGIN = 'https://site.example';
/** The `code_verifier` of the transfer tokens with a challenge. */
export const CODE_VERIFIER = 'a-code-verifier-of-at-least-43-characters-0';
const AGENT_ID = '5b0c2d7e-3f41-4c8a-9d26-7e1f0a9b8c64';
/** The resource server that introspects tokens. */
export const RESOURCE_SERVER = { id: 'chat-api', secret: 'secret-of-the-chat-api-0123456789' };

const REGISTRY = `
organizations: [{ id: ${ORGANIZATION}, name: Bench, public_clients: [${CLIENT}] }]
clients:
  - client_id: ${CLIENT}
    name: Site
    client_type: web
    scopes: ['customers:own']
    redirect_uris: ['${ORIGIN}/']
    grant_types: [cookie, agent_token, identity_token, refresh_token]
    grants: { identity_token: { remember: [browser, refresh_token] } }
resource_servers: [{ id: ${RESOURCE_SERVER.id}, secret: ${RESOURCE_SERVER.secret}, audiences: [customer-api] }]
`;
const FIRST_ID_TIME_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
const ROWS_PER_INSERT = 1_000_000;
/** The numbers of the customers of yesterday are higher. No benchmark has so many other customers. */
const MAX_OTHER_CUSTOMERS = 100_000_000;

/**
 * The environment of the service. Its rate limits are on, but so high that no benchmark reaches them.
 *
 * @param {string} folder @param {string} databaseUrl
 */
export function environmentOf(folder, databaseUrl) {
  const keys = join(folder, 'keys.json');
  const registry = join(folder, 'registry.yaml');
  writeFileSync(keys, execFileSync(process.execPath, ['dist/cli.js', 'keys', 'generate']));
  writeFileSync(registry, REGISTRY);
  return {
    PATH: process.env.PATH,
    NODE_ENV: 'production',
    DATABASE_URL: databaseUrl,
    MIGRATE_ON_START: 'true',
    SIGNING_KEYS_FILE: keys,
    REGISTRY_FILE: registry,
    AUTH_URL: 'http://localhost',
    HOST: '127.0.0.1',
    RATE_LIMIT: 'identities=999999999/60,tokens=999999999/60,transfers=999999999/60,sign_in=999999999/60',
  };
}

/** The n-th customer that `seedCustomers` adds, and the secret of its browser's cookie. @param {number} n from 1 */
export function customer(n) {
  return { entityId: id(n, 'customer'), secret: `${id(n, 'browser').replaceAll('-', '')}${sha256(`secret${n}`)}` };
}

/** The UUIDv7 of the n-th customer or browser. @param {number} n @param {string} word */
function id(n, word) {
  const time = (FIRST_ID_TIME_MS + n).toString(16).padStart(12, '0');
  const rest = createHash('md5').update(`${word}${n}`).digest('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-8${rest.slice(3, 6)}-${rest.slice(6, 18)}`;
}

/** The same as SQL. @param {string} word */
function idOf(word) {
  const time = `LPAD(LOWER(HEX(${FIRST_ID_TIME_MS} + seq)), 12, '0')`;
  const rest = `MD5(CONCAT('${word}', seq))`;
  return `CONCAT(LEFT(${time}, 8), '-', SUBSTR(${time}, 9), '-7', LEFT(${rest}, 3), '-8', SUBSTR(${rest}, 4, 3), '-',
    SUBSTR(${rest}, 7, 12))`;
}

/**
 * Adds customers with a browser each, in the order of their ids. By default each was seen today, as a customer that has
 * a valid token, because the service notes the first visit of a day by an UPDATE.
 *
 * @param {import('mysql2/promise').Connection} database @param {number} from @param {number} to
 * @param {number} [daysAgo] the days since the last visit
 */
export async function seedCustomers(database, from, to, daysAgo = 0) {
  const lastDay = Math.floor(Date.now() / DAY_MS) - daysAgo;
  const [entityId, browserId] = [idOf('customer'), idOf('browser')];
  for (let first = from; first <= to; first += ROWS_PER_INSERT) {
    const numbers = `seq_${first}_to_${Math.min(to, first + ROWS_PER_INSERT - 1)}`;
    await database.query(`
      INSERT INTO customer (entity_id, organization_id, group_id, creator, generation, link_generation, version,
        last_token_day, created_at)
      SELECT ${entityId}, '${ORGANIZATION}', '', 'browser', 0, 0, 0, ${lastDay}, NOW(3) FROM ${numbers}`);
    await database.query(`
      INSERT INTO browser (browser_id, secret_hash, version)
      SELECT ${browserId}, SHA2(SHA2(CONCAT('secret', seq), 256), 256), 0 FROM ${numbers}`);
    await database.query(`
      INSERT INTO browser_customer (browser_id, entity_id, organization_id, group_id, origin, began_in, generation,
        seen_day)
      SELECT ${browserId}, ${entityId}, '${ORGANIZATION}', '', 'own', ${browserId}, 0, ${lastDay} FROM ${numbers}`);
  }
}

/** Adds customers that were seen yesterday. @param {import('mysql2/promise').Connection} database @param {number} count */
export function seedCustomersOfYesterday(database, count) {
  return seedCustomers(database, MAX_OTHER_CUSTOMERS + 1, MAX_OTHER_CUSTOMERS + count, 1);
}

/** The n-th customer that was seen yesterday. @param {number} n from 1 */
export const customerOfYesterday = (n) => customer(MAX_OTHER_CUSTOMERS + n);

/** Adds the agent whose tokens `tokenMaker` signs. @param {import('mysql2/promise').Connection} database */
export async function seedAgent(database) {
  await database.query(
    `INSERT INTO agent (id, email, name, password_hash, organization_id, scopes, owned_by_file)
      VALUES (?, 'agent@bench.example', 'Agent', '', ?, '["customers:own"]', 0)`,
    [AGENT_ID, ORGANIZATION],
  );
}

/** The n-th transfer token that `seedTransfers` adds. @param {number} n */
export const transferToken = (n) => `dev:${sha256(`code${n}`)}`;
/** The n-th transfer token with a challenge. @param {number} n */
export const challengedToken = (n) => `dev:${sha256(`challenged${n}`)}`;
/** The n-th refresh token that `seedRefreshTokens` adds. @param {number} n */
export const refreshToken = (n) => `dev:${sha256(`family${n}`).slice(0, 22)}.${sha256(`refresh${n}`).slice(0, 43)}`;
/** The `external_id` of the n-th customer. @param {number} n */
export const externalId = (n) => `user-${n}`;

/** The ids of the first customers, with their numbers and the `jti` of a token. @param {number} count */
const firstCustomers = (count) => `(
  SELECT entity_id, organization_id, ROW_NUMBER() OVER (ORDER BY entity_id) AS seq, UUID() AS jti
  FROM customer ORDER BY entity_id LIMIT ${count}) customers`;
/** The hash of a token whose secret is made of a word and a number. @param {string} word */
const hashOf = (word) => `SHA2(CONCAT('dev:', SHA2(CONCAT('${word}', seq), 256)), 256)`;

/**
 * Adds transfer tokens without and with a challenge. The n-th token is for the n-th customer.
 *
 * @param {import('mysql2/promise').Connection} database @param {number} count
 */
export async function seedTransfers(database, count) {
  const challenge = createHash('sha256').update(CODE_VERIFIER).digest('base64url');
  for (const [word, value] of [
    ['code', null],
    ['challenged', challenge],
  ])
    await database.query(
      `INSERT INTO one_time_code (hash, kind, client_id, subject, organization_id, code_challenge, made_with, expires_at)
        SELECT ${hashOf(word ?? '')}, 'transfer', '${CLIENT}', entity_id, organization_id, ?,
          CONCAT('{"jti":"', jti, '","lineage":{"gen":0,"ancestors":["', jti, '"],"transfers":1},"issued_at":1}'),
          NOW(3) + INTERVAL 1 DAY
        FROM ${firstCustomers(count)}`,
      [value],
    );
}

/**
 * Adds refresh families. The n-th family is of the n-th customer.
 *
 * @param {import('mysql2/promise').Connection} database @param {number} count
 */
export async function seedRefreshTokens(database, count) {
  await database.query(`
    INSERT INTO refresh_family (id, family_hash, client_id, customer_id, organization_id, scope, lineage, root,
      generation, begun_at, current_hash, rotated_at, counted_since, rotations, expires_at)
    SELECT UUID(), SHA2(LEFT(SHA2(CONCAT('family', seq), 256), 22), 256), '${CLIENT}', entity_id, organization_id, '',
      CONCAT('{"ancestors":["', jti, '"],"transfers":1}'), jti, 0, NOW(3),
      SHA2(LEFT(SHA2(CONCAT('refresh', seq), 256), 43), 256), NOW(3), '1970-01-01', 0, NOW(3) + INTERVAL 1 DAY
    FROM ${firstCustomers(count)}`);
  await database.query(`
    INSERT INTO refresh_family_ancestor (family_id, ancestor_id) SELECT id, root FROM refresh_family`);
}

/** Gives the first customers an `external_id`. @param {import('mysql2/promise').Connection} database @param {number} count */
export async function seedUsers(database, count) {
  await database.query(`
    INSERT INTO organization_user (entity_id, organization_id, user_hash, customer_id, linked_by, linked_at)
    SELECT entity_id, organization_id, SHA2(CONCAT('["', organization_id, '","user-', seq, '"]'), 256), entity_id,
      UUID(), NOW(3)
    FROM ${firstCustomers(count)}`);
}

/**
 * Signs access tokens as the service does, for customers and for one agent.
 *
 * @param {string} keysFile
 */
export async function tokenMaker(keysFile) {
  const [jwk] = JSON.parse(readFileSync(keysFile, 'utf8')).keys;
  const key = await importJWK(jwk, 'ES256');
  const make = async (/** @type {Record<string, string | number>} */ claims) => {
    const all = { iss: 'http://localhost', client_id: CLIENT, organization_id: ORGANIZATION, ...claims };
    const token = new SignJWT({ ...all, jti: randomUUID() }).setIssuedAt().setExpirationTime('8h');
    return `dev:${await token.setProtectedHeader({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid }).sign(key)}`;
  };
  return {
    ofCustomer: (/** @type {number} */ n) => make({ sub: customer(n).entityId, aud: 'customer-api', gen: 0 }),
    ofAgent: () => make({ sub: AGENT_ID, aud: 'agent-api', scope: 'customers:own', gen: 0 }),
  };
}

/** @param {string} text */
function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}
