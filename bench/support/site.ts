/** The data of all benchmarks: the registry, customers, and what they hold. The n-th of each is numbered from 1. */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { importJWK, SignJWT } from 'jose';
import type { Connection } from 'mysql2/promise';

export const ORGANIZATION = '390e44e6-f1e6-4368-86dd-b74514508c2e';
export const CLIENT = 'site';
/** Of the client's pages. */
export const ORIGIN = 'https://site.example';
export const RESOURCE_SERVER = { id: 'chat-api', secret: 'secret-of-the-chat-api-0123456789' };
export const BACKEND = {
  id: 'backend',
  secret: 'secret-of-the-backend-0123456789abcdef',
  redirectUri: 'https://backend.example/',
};
/** An agent that signs in. */
export const AGENT = { email: 'agent@site.example', password: 'password of the agent' };
/** The agent of `tokenMaker`. */
const AGENT_ID = '5b0c2d7e-3f41-4c8a-9d26-7e1f0a9b8c64';
const AGENT_SESSION_ID = '5e55104a-0000-4000-8000-00000000a6e7';

export const REGISTRY = `
organizations: [{ id: ${ORGANIZATION}, name: Bench, public_clients: all }]
clients:
  - client_id: ${CLIENT}
    name: Site
    client_type: web
    scopes: ['customers:own']
    redirect_uris: ['${ORIGIN}/']
    grant_types: [cookie, agent_token, identity_token, refresh_token]
    grants: { identity_token: { remember: [browser, refresh_token] } }
  - client_id: ${BACKEND.id}
    name: Backend
    client_type: server
    organization_id: ${ORGANIZATION}
    client_secret: ${BACKEND.secret}
    redirect_uris: ['${BACKEND.redirectUri}']
    scopes: ['customers:own']
agents:
  - { email: ${AGENT.email}, name: Agent, password: ${AGENT.password}, organization_id: ${ORGANIZATION},
      scopes: ['customers:own'] }
resource_servers: [{ id: ${RESOURCE_SERVER.id}, secret: ${RESOURCE_SERVER.secret}, audiences: [customer-api], events: all }]
`;
const FIRST_ID_TIME_MS = Date.UTC(2026, 0, 1);
const DAY_MS = 86_400_000;
/** How long a session of a browser lasts without a visit. */
const IDLE_DAYS = 731;
/** The end of the cookie with the secret. It belongs to the customer's id. */
const TAG_CHARACTERS = 16;
/** The customers with transfer tokens. They send no other requests, because a customer may have 60. */
const [FIRST_TRANSFERRING, TRANSFERRING_COUNT] = [20_001, 80_000];
const ROWS_PER_INSERT = 1_000_000;
/** The numbers of the customers of yesterday are higher. No benchmark has so many other customers. */
const MAX_OTHER_CUSTOMERS = 100_000_000;

/** The n-th customer that `seedCustomers` adds, and the cookie with its browser's secret. */
export function customer(n: number): { entityId: string; secret: string; session: string } {
  const [entityId, secret] = [id(n, 'customer'), sha256(`secret${n}`)];
  const tag = createHmac('sha256', secret).update(entityId).digest('hex').slice(0, TAG_CHARACTERS);
  return { entityId, secret: `${id(n, 'browser').replaceAll('-', '')}${secret}${tag}`, session: id(n, 'session') };
}

export const customerOfYesterday = (n: number) => customer(MAX_OTHER_CUSTOMERS + n);
export const transferToken = (n: number) => `dev:${sha256(`code${n}`)}`;

/** The UUIDv7 of the n-th customer, browser or session. */
function id(n: number, word: string): string {
  const time = (FIRST_ID_TIME_MS + n).toString(16).padStart(12, '0');
  const rest = createHash('md5').update(`${word}${n}`).digest('hex');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(0, 3)}-8${rest.slice(3, 6)}-${rest.slice(6, 18)}`;
}

/** The same as SQL. */
export function idOf(word: string, n = 'seq'): string {
  const time = `LPAD(LOWER(HEX(${FIRST_ID_TIME_MS} + ${n})), 12, '0')`;
  const rest = `MD5(CONCAT('${word}', ${n}))`;
  return `CONCAT(LEFT(${time}, 8), '-', SUBSTR(${time}, 9), '-7', LEFT(${rest}, 3), '-8', SUBSTR(${rest}, 4, 3), '-',
    SUBSTR(${rest}, 7, 12))`;
}

/** Adds customers with a browser each, in the order of their ids. The service notes the first visit of a day. */
export async function seedCustomers(
  database: Connection,
  from: number,
  to: number,
  daysAgo = 0,
  organizationId = ORGANIZATION,
): Promise<void> {
  const lastDay = Math.floor(Date.now() / DAY_MS) - daysAgo;
  const [entityId, browserId, sessionId] = [idOf('customer'), idOf('browser'), idOf('session')];
  for (let first = from; first <= to; first += ROWS_PER_INSERT) {
    const numbers = `seq_${first}_to_${Math.min(to, first + ROWS_PER_INSERT - 1)}`;
    await database.query(`
      INSERT INTO customer (entity_id, organization_id, group_id, creator, generation, version, has_user, seen_day,
        created_at)
      SELECT ${entityId}, '${organizationId}', '', 'browser', 0, 0, 0, ${lastDay}, NOW(3) FROM ${numbers}`);
    await database.query(`
      INSERT INTO browser (browser_id, secret_hash, version)
      SELECT ${browserId}, SHA2(SHA2(CONCAT('secret', seq), 256), 256), 0 FROM ${numbers}`);
    await database.query(`
      INSERT INTO session (id, kind, customer_id, browser_id, organization_id, group_id, depth, epoch, seen_day,
        created_at, expires_at)
      SELECT ${sessionId}, 'own', ${entityId}, ${browserId}, '${organizationId}', '', 0, 0, ${lastDay}, NOW(3),
        NOW(3) + INTERVAL ${IDLE_DAYS} DAY FROM ${numbers}`);
  }
}

/** Adds the customers of `customerOfYesterday`. */
export function seedCustomersOfYesterday(database: Connection, count: number): Promise<void> {
  return seedCustomers(database, MAX_OTHER_CUSTOMERS + 1, MAX_OTHER_CUSTOMERS + count, 1);
}

/** Adds the agent of `tokenMaker`. */
export async function seedAgent(database: Connection): Promise<void> {
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

/** Adds transfer tokens. */
export async function seedTransferTokens(database: Connection, count: number): Promise<void> {
  const maker = `(${FIRST_TRANSFERRING} + seq % ${TRANSFERRING_COUNT})`;
  await database.query(`
    INSERT INTO session (id, kind, customer_id, parent_id, parent_epoch, depth, epoch, client_id, code_hash, created_at,
      expires_at)
    SELECT UUID(), 'code', ${idOf('customer', maker)}, ${idOf('session', maker)}, 0, 1, 0, '${CLIENT}',
      SHA2(CONCAT('dev:', SHA2(CONCAT('code', seq), 256)), 256), NOW(3), NOW(3) + INTERVAL 1 DAY FROM seq_1_to_${count}`);
}

/** Signs access tokens as the service does, for customers and for one agent. */
export async function tokenMaker(keysFile: string) {
  const [jwk] = JSON.parse(readFileSync(keysFile, 'utf8')).keys;
  const key = await importJWK(jwk, 'ES256');
  const make = async (claims: Record<string, string | number>) => {
    const all = { iss: 'http://localhost', client_id: CLIENT, organization_id: ORGANIZATION, ...claims };
    const token = new SignJWT({ ...all, jti: randomUUID() }).setIssuedAt().setExpirationTime('8h');
    return `dev:${await token.setProtectedHeader({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid }).sign(key)}`;
  };
  return {
    ofCustomer: (n: number) => {
      const { entityId, session } = customer(n);
      return make({ sub: entityId, aud: 'customer-api', gen: 0, sid: session, ep: 0 });
    },
    ofAgent: () => make({ sub: AGENT_ID, aud: 'agent-api', scope: 'customers:own', sid: AGENT_SESSION_ID, ep: 0 }),
  };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
