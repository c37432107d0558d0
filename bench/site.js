// @ts-check
/** The data of all benchmarks: a site with customers. The service has its default production configuration. */
import { execFileSync } from 'node:child_process';
import { createHash, createHmac, randomUUID } from 'node:crypto';
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
const AGENT_SESSION_ID = '5e55104a-0000-4000-8000-00000000a6e7';
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
/** How long a session of a browser lasts without a visit. */
const IDLE_DAYS = 731;
/** The end of the cookie with the secret. It belongs to the customer's id. */
const TAG_CHARACTERS = 16;
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

/** The n-th customer that `seedCustomers` adds, and the cookie with its browser's secret. @param {number} n from 1 */
export function customer(n) {
  const [entityId, secret] = [id(n, 'customer'), sha256(`secret${n}`)];
  const tag = createHmac('sha256', secret).update(entityId).digest('hex').slice(0, TAG_CHARACTERS);
  return { entityId, secret: `${id(n, 'browser').replaceAll('-', '')}${secret}${tag}`, session: id(n, 'session') };
}

/** The UUIDv7 of the n-th customer, browser or session. @param {number} n @param {string} word */
function id(n, word) {
  const time = (FIRST_ID_TIME_MS + n).toString(16).padStart(12, '0');
  const rest = createHash('md5').update(`${word}${n}`).digest('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-8${rest.slice(3, 6)}-${rest.slice(6, 18)}`;
}

/** The same as SQL. @param {string} word @param {string} [n] */
export function idOf(word, n = 'seq') {
  const time = `LPAD(LOWER(HEX(${FIRST_ID_TIME_MS} + ${n})), 12, '0')`;
  const rest = `MD5(CONCAT('${word}', ${n}))`;
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
  const [entityId, browserId, sessionId] = [idOf('customer'), idOf('browser'), idOf('session')];
  for (let first = from; first <= to; first += ROWS_PER_INSERT) {
    const numbers = `seq_${first}_to_${Math.min(to, first + ROWS_PER_INSERT - 1)}`;
    await database.query(`
      INSERT INTO customer (entity_id, organization_id, group_id, creator, generation, version, has_user, seen_day,
        created_at)
      SELECT ${entityId}, '${ORGANIZATION}', '', 'browser', 0, 0, 0, ${lastDay}, NOW(3) FROM ${numbers}`);
    await database.query(`
      INSERT INTO browser (browser_id, secret_hash, version)
      SELECT ${browserId}, SHA2(SHA2(CONCAT('secret', seq), 256), 256), 0 FROM ${numbers}`);
    await database.query(`
      INSERT INTO session (id, kind, customer_id, browser_id, organization_id, group_id, depth, epoch, seen_day,
        created_at, expires_at)
      SELECT ${sessionId}, 'own', ${entityId}, ${browserId}, '${ORGANIZATION}', '', 0, 0, ${lastDay}, NOW(3),
        NOW(3) + INTERVAL ${IDLE_DAYS} DAY FROM ${numbers}`);
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
    `INSERT INTO agent (id, email, name, password_hash, organization_id, scopes, from_file)
      VALUES (?, 'agent@bench.example', 'Agent', '', ?, '["customers:own"]', 0)`,
    [AGENT_ID, ORGANIZATION],
  );
  await database.query(
    `INSERT INTO agent_session (id, kind, agent_id, organization_id, client_id, scope, epoch, created_at, expires_at)
      VALUES (?, 'token', ?, ?, ?, 'customers:own', 0, NOW(3), NOW(3) + INTERVAL 1 DAY)`,
    [AGENT_SESSION_ID, AGENT_ID, ORGANIZATION, CLIENT],
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

/** The ids of the first customers, with their numbers. @param {number} count */
const firstCustomers = (count) => `(
  SELECT entity_id, organization_id, ROW_NUMBER() OVER (ORDER BY entity_id) AS seq
  FROM customer ORDER BY entity_id LIMIT ${count}) customers`;
/** The columns of a session that a transfer from the session of the n-th browser made, and their values. */
const TRANSFERRED = {
  columns: 'id, customer_id, parent_id, parent_epoch, depth, epoch, client_id, created_at, expires_at',
  values: `UUID(), entity_id, ${idOf('session')}, 0, 1, 0, '${CLIENT}', NOW(3), NOW(3) + INTERVAL 1 DAY`,
};
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
      `INSERT INTO session (${TRANSFERRED.columns}, kind, code_hash, code_challenge)
        SELECT ${TRANSFERRED.values}, 'code', ${hashOf(word ?? '')}, ? FROM ${firstCustomers(count)}`,
      [value],
    );
}

/**
 * Adds sessions with refresh tokens. The n-th session is of the n-th customer.
 *
 * @param {import('mysql2/promise').Connection} database @param {number} count
 */
export async function seedRefreshTokens(database, count) {
  const today = Math.floor(Date.now() / DAY_MS);
  await database.query(`
    INSERT INTO session (${TRANSFERRED.columns}, kind, refresh_id_hash, current_hash, redeemed_at, used_at, seen_day)
    SELECT ${TRANSFERRED.values}, 'refresh', SHA2(LEFT(SHA2(CONCAT('family', seq), 256), 22), 256),
      SHA2(LEFT(SHA2(CONCAT('refresh', seq), 256), 43), 256), NOW(3), NOW(3), ${today}
    FROM ${firstCustomers(count)}`);
}

/** Gives the first customers an `external_id`. @param {import('mysql2/promise').Connection} database @param {number} count */
export async function seedUsers(database, count) {
  await database.query(`
    INSERT INTO customer_key (hash, entity_id)
    SELECT SHA2(CONCAT('["', organization_id, '","user-', seq, '"]'), 256), entity_id FROM ${firstCustomers(count)}`);
  await database.query('UPDATE customer SET has_user = 1 WHERE entity_id IN (SELECT entity_id FROM customer_key)');
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
    ofCustomer: (/** @type {number} */ n) => {
      const { entityId, session } = customer(n);
      return make({ sub: entityId, aud: 'customer-api', gen: 0, sid: session, ep: 0 });
    },
    ofAgent: () => make({ sub: AGENT_ID, aud: 'agent-api', scope: 'customers:own', sid: AGENT_SESSION_ID, ep: 0 }),
  };
}

/** @param {string} text */
function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}
