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

/** The n-th customer that `seedCustomers` adds. @param {number} n from 1 */
export function customer(n) {
  const time = (FIRST_ID_TIME_MS + n).toString(16).padStart(12, '0');
  const rest = createHash('md5').update(String(n)).digest('hex');
  const entityId = `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-8${rest.slice(3, 6)}-${rest.slice(6, 18)}`;
  return { entityId, secret: sha256(`secret${n}`) };
}

/**
 * Adds customers in the order of their ids. Each was seen today, as a customer that has a valid token. The service notes
 * the first visit of a day by an UPDATE, which would be most of the cost if each request were a first visit.
 *
 * @param {import('mysql2/promise').Connection} database @param {number} from @param {number} to
 */
export async function seedCustomers(database, from, to) {
  const today = Math.floor(Date.now() / DAY_MS);
  for (let first = from; first <= to; first += ROWS_PER_INSERT) {
    await database.query(`
      INSERT INTO customer_identity
        (entity_id, browser_id, organization_id, group_id, secret_hash, last_seen_day, scope_seen_day, created_at)
      SELECT id, id, '${ORGANIZATION}', '', SHA2(SHA2(CONCAT('secret', n), 256), 256), ${today}, ${today}, NOW(3)
      FROM (
        SELECT n, CONCAT(LEFT(t, 8), '-', SUBSTR(t, 9), '-7', LEFT(r, 3), '-8', SUBSTR(r, 4, 3), '-', SUBSTR(r, 7, 12)) AS id
        FROM (
          SELECT seq AS n, MD5(seq) AS r, LPAD(LOWER(HEX(${FIRST_ID_TIME_MS} + seq)), 12, '0') AS t
          FROM seq_${first}_to_${Math.min(to, first + ROWS_PER_INSERT - 1)}
        ) parts
      ) ids`);
  }
}

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
export const refreshToken = (n) => `dev:${sha256(`refresh${n}`)}`;
/** The `external_id` of the n-th customer. @param {number} n */
export const externalId = (n) => `user-${n}`;

/** The ids of the first customers, with their numbers. @param {number} count */
const firstCustomers = (count) => `(
  SELECT entity_id, organization_id, ROW_NUMBER() OVER (ORDER BY entity_id) AS seq
  FROM customer_identity ORDER BY entity_id LIMIT ${count}) customers`;
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
          CONCAT('{"jti":"', UUID(), '","sub":"', entity_id, '","client_id":"${CLIENT}","iat":1,"lineage":{"gen":0,"ancestors":["', UUID(), '"],"transfers":1}}'),
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
    INSERT INTO refresh_family (id, client_id, agent_id, customer_id, organization_id, scope, lineage, current_hash,
      begun_at, rotated_at, expires_at, generation)
    SELECT UUID(), '${CLIENT}', '', entity_id, organization_id, '',
      CONCAT('{"ancestors":["', UUID(), '"],"transfers":1}'), ${hashOf('refresh')},
      NOW(3), NOW(3), NOW(3) + INTERVAL 1 DAY, 0
    FROM ${firstCustomers(count)}`);
  await database.query(`
    INSERT INTO refresh_token (hash, family_id, expires_at)
    SELECT current_hash, id, expires_at FROM refresh_family`);
}

/** Gives the first customers an `external_id`. @param {import('mysql2/promise').Connection} database @param {number} count */
export async function seedUsers(database, count) {
  await database.query(`
    INSERT INTO organization_user (entity_id, organization_id, user_hash, customer_id, linked_by, linked_at, settled_at)
    SELECT entity_id, organization_id, SHA2(CONCAT('["', organization_id, '","user-', seq, '"]'), 256), entity_id,
      UUID(), NOW(3), NOW(3)
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
