/**
 * The floor: a server that gives the same responses as the service, with node:http, node:crypto and mysql2. It has
 * no framework, validation, registry, log, limits, deadline, cache or batches, and sends as few statements as correct
 * responses need. `npm run bench` reports the ratio of both.
 */
import crypto from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { promisify } from 'node:util';
import mysql from 'mysql2';
import { v7 as uuidv7 } from 'uuid';
import { derSignature, rawSignature } from '../src/access-token/access-tokens.js';

const { PORT = '0', DATABASE_URL = '', SIGNING_KEYS_FILE = '' } = process.env;
const DAY_MS = 86_400_000;
const BROWSER_LIFETIME_DAYS = 732;
const TOKEN_LIFETIME_SECONDS = 28_800;
const COOKIE_LIFETIME_SECONDS = 63_072_000;
const [jwk] = JSON.parse(readFileSync(SIGNING_KEYS_FILE, 'utf8')).keys;
const privateKey = crypto.createPrivateKey({ key: jwk, format: 'jwk' });
const publicKey = crypto.createPublicKey(privateKey);
const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid })).toString('base64url');
const pool = mysql.createPool({ uri: DATABASE_URL.replace('mariadb:', 'mysql:'), timezone: 'Z', connectionLimit: 10 });
const getConnection = promisify(pool.getConnection.bind(pool));
pool.on('connection', (connection) => connection.query('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED'));

/** Reads each row by a key. Sessions that agents began need a second statement and are not measured. */
const RECOGNIZE_CUSTOMER = `
  SELECT browser.secret_hash, session.id, session.customer_id, session.epoch, session.seen_day, session.expires_at,
    customer.generation
  FROM browser JOIN session
    ON session.browser_id = browser.browser_id AND session.organization_id = ? AND session.group_id = ''
  JOIN customer ON customer.entity_id = session.customer_id
  WHERE browser.browser_id = ? AND session.agent_session_id IS NULL`;
const NOTE_DAY = 'UPDATE session SET seen_day = ?, expires_at = ? WHERE id = ? AND browser_id = ?';
const NEW_CUSTOMER = `INSERT INTO customer
  (entity_id, organization_id, group_id, creator, generation, version, has_user, seen_day, created_at)
  VALUES (?, ?, '', 'browser', ?, 0, 0, ?, ?)`;
const NEW_BROWSER = 'INSERT INTO browser (browser_id, secret_hash, version) VALUES (?, ?, 0)';
const NEW_SESSION = `INSERT INTO session
  (id, kind, customer_id, browser_id, organization_id, group_id, depth, epoch, seen_day, created_at, expires_at)
  VALUES (?, 'own', ?, ?, ?, '', 0, 0, ?, ?, ?)`;
const CLIENT_HAS_ENDED = "ended.kind = 'client' AND ended.value = ? AND ended.issued_before >= ?";
const CUSTOMER_OF_AGENT = `
  SELECT customer.generation FROM customer JOIN agent_session ON agent_session.id = ? AND agent_session.epoch = ?
  LEFT JOIN ended ON ${CLIENT_HAS_ENDED}
  WHERE customer.entity_id = ? AND customer.organization_id = ? AND customer.erased_at IS NULL
    AND customer.linked_to IS NULL AND ended.kind IS NULL`;
const CODE = `
  SELECT session.id, session.kind, session.customer_id, session.client_id, customer.generation, customer.organization_id
  FROM session JOIN customer ON customer.entity_id = session.customer_id
  LEFT JOIN ended ON ended.kind = 'client' AND ended.value = session.client_id
    AND ended.issued_before >= session.created_at
  WHERE session.code_hash = ? AND session.agent_session_id IS NULL AND ended.kind IS NULL`;
/** Changes nothing if the code was redeemed, or has ended. */
const REDEEM = `
  UPDATE session SET kind = 'moved', redeemed_at = CURRENT_TIMESTAMP(3), redeemed_network = ?, expires_at = ?
  WHERE id = ? AND kind = 'code' AND expires_at > ?`;
const VALID = `
  SELECT 1 AS is_valid FROM session LEFT JOIN ended ON ${CLIENT_HAS_ENDED}
  WHERE session.id = ? AND session.epoch = ? AND ended.kind IS NULL`;

createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () =>
    respondTo(request, text)
      .then(({ body, cookies }) => respond(response, body, cookies))
      .catch((error) => {
        console.error(error);
        response.writeHead(500).end();
      }),
  );
}).listen(Number(PORT), '127.0.0.1');

interface Content {
  body: object;
  cookies?: string[];
}

async function respondTo(request: IncomingMessage, text: string): Promise<Content> {
  if (request.url === '/v2/customer/info') return info(bearerOf(request));
  if (request.url !== '/v2/customer/token') return { body: {} }; // the poll of the start
  const body = JSON.parse(text);
  if (body.grant_type === 'agent_token') return agentToken(body, verified(bearerOf(request)));
  if (body.grant_type === 'identity_token') return exchange(body, request.socket.remoteAddress);
  const [, entityId] = /__svc_cid=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
  const [, secret] = /__svc_cst=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
  return entityId && secret ? returningCustomer(body, entityId, secret) : newCustomer(body);
}

async function returningCustomer(body: TokenRequest, entityId: string, secret: string): Promise<Content> {
  const [, browser = '', random = '', tag = ''] = /^(.{32})(.{64})(.{16})$/.exec(secret) ?? [];
  assertEqual(tag, tagOf(random, entityId));
  const browserId = hyphenated(browser);
  const [row] = await query(RECOGNIZE_CUSTOMER, [body.organization_id, browserId]);
  assertEqual(row.secret_hash, sha256(random));
  if (row.customer_id !== entityId || row.expires_at <= new Date()) throw new Error('another scope, or expired');
  if (row.seen_day !== today()) await query(NOTE_DAY, [today(), idleEnd(), row.id, browserId]);
  const claims = { gen: Number(row.generation), sid: row.id, ep: row.epoch };
  const { organization_id } = body;
  return { body: tokenResponse(entityId, body, { organization_id }, claims), cookies: cookiesOf(entityId, secret) };
}

async function newCustomer(body: TokenRequest): Promise<Content> {
  const { organization_id } = body;
  const [entityId, browserId, sid] = [uuidv7(), uuidv7(), uuidv7()];
  const random = crypto.randomBytes(32).toString('hex');
  const secret = `${browserId.replaceAll('-', '')}${random}${tagOf(random, entityId)}`;
  const now = new Date();
  const connection = await getConnection();
  try {
    await query('START TRANSACTION', [], connection);
    await query(NEW_CUSTOMER, [entityId, organization_id, now.getTime(), today(), now], connection);
    await query(NEW_BROWSER, [browserId, sha256(random)], connection);
    await query(NEW_SESSION, [sid, entityId, browserId, organization_id, today(), now, idleEnd()], connection);
    await query('COMMIT', [], connection);
  } catch (error) {
    connection.destroy(); // rolls back
    throw error;
  }
  connection.release();
  const claims = { gen: now.getTime(), sid, ep: 0 };
  return { body: tokenResponse(entityId, body, { organization_id }, claims), cookies: cookiesOf(entityId, secret) };
}

// biome-ignore lint/suspicious/noExplicitAny: the claims of a token
async function agentToken(body: TokenRequest, claims: any): Promise<Content> {
  const { organization_id, client_id, iat, sub, sid, ep, scope } = claims;
  if (!scope.split(' ').includes('customers:own')) throw new Error('missing scope');
  const values = [sid, ep, client_id, new Date(iat * 1000), body.entity_id, organization_id];
  const [customer] = await query(CUSTOMER_OF_AGENT, values);
  if (!customer) throw new Error('ended, or unknown');
  const session = { gen: Number(customer.generation), act: { sub, sid, ep, client_id } };
  const fields = { client_id: body.client_id, organization_id };
  return { body: tokenResponse(body.entity_id, { ...body, organization_id }, fields, session) };
}

async function exchange(body: TokenRequest, ip: string | undefined): Promise<Content> {
  const [code] = await query(CODE, [sha256(body.code)]);
  if (code?.kind !== 'code' || code.client_id !== body.client_id) throw new Error('invalid code');
  const end = new Date(Date.now() + TOKEN_LIFETIME_SECONDS * 1000);
  const { affectedRows } = await query(REDEEM, [sha256(`${code.id} ${ip}`), end, code.id, new Date()]);
  if (affectedRows !== 1) throw new Error('another request was faster, or the code has ended');
  const { client_id, organization_id } = code;
  const claims = { gen: Number(code.generation), sid: code.id, ep: 0 };
  return { body: tokenResponse(code.customer_id, { ...body, organization_id }, { client_id }, claims) };
}

async function info(access_token: string): Promise<Content> {
  const { client_id, iat, sid, ep, sub, exp, organization_id } = verified(access_token);
  const [row] = await query(VALID, [client_id, new Date(iat * 1000), sid, ep]);
  if (!row) throw new Error('ended');
  const expires_in = exp - Math.floor(Date.now() / 1000);
  return { body: { access_token, client_id, entity_id: sub, expires_in, organization_id, token_type: 'Bearer' } };
}

type TokenRequest = Record<'client_id' | 'organization_id' | 'grant_type' | 'entity_id' | 'code', string>;

function tokenResponse(sub: string, request: TokenRequest, fields: object, session: object): object {
  const { client_id, organization_id, grant_type: gty } = request;
  const iat = Math.floor(Date.now() / 1000);
  const ids = { iss: 'http://localhost', sub, aud: 'customer-api', client_id, organization_id, gty };
  const claims = { ...ids, ...session, iat, exp: iat + TOKEN_LIFETIME_SECONDS, jti: crypto.randomUUID() };
  const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  const signature = rawSignature(crypto.sign('sha256', Buffer.from(signed), privateKey)).toString('base64url');
  const access_token = `dev:${signed}.${signature}`;
  return { access_token, entity_id: sub, expires_in: TOKEN_LIFETIME_SECONDS, token_type: 'Bearer', ...fields };
}

function verified(token: string) {
  const [head, payload = '', signature = ''] = token.slice(4).split('.');
  const der = derSignature(Buffer.from(signature, 'base64url'));
  const isSigned = head === header && crypto.verify('sha256', Buffer.from(`${head}.${payload}`), publicKey, der);
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  if (!isSigned || claims.exp <= Date.now() / 1000) throw new Error('invalid token');
  return claims;
}

function respond(response: ServerResponse, body: object, cookies?: string[]): void {
  const text = JSON.stringify(body);
  response.writeHead(200, {
    Vary: 'Origin',
    ...(cookies && { 'Set-Cookie': cookies }),
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': crypto.randomUUID(),
    'Content-Length': Buffer.byteLength(text),
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  response.end(text);
}

function cookiesOf(entityId: string, secret: string): string[] {
  const expires = new Date(Date.now() + COOKIE_LIFETIME_SECONDS * 1000).toUTCString();
  const lifetime = `Max-Age=${COOKIE_LIFETIME_SECONDS}; Path=/v2/customer; Domain=localhost; Expires=${expires}`;
  const attributes = `; ${lifetime}; HttpOnly; Secure; SameSite=None; Partitioned`;
  return [`__svc_cid=${entityId}${attributes}`, `__svc_cst=${secret}${attributes}`];
}

/** Rows, or the result of a change. The promises of mysql2 cost more: they record a stack for each statement. */
// biome-ignore lint/suspicious/noExplicitAny: rows have any columns
function query(sql: string, parameters: any[], connection: mysql.Pool | mysql.PoolConnection = pool): Promise<any> {
  return new Promise((resolve, reject) => {
    connection.execute(sql, parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

function assertEqual(one: string, other: string): void {
  if (!crypto.timingSafeEqual(Buffer.from(one), Buffer.from(other))) throw new Error('wrong secret');
}

const bearerOf = ({ headers }: IncomingMessage) => headers.authorization?.slice(7) ?? '';
const sha256 = (text: string) => crypto.hash('sha256', text);
const tagOf = (random: string, entityId: string) =>
  crypto.createHmac('sha256', random).update(entityId).digest('hex').slice(0, 16);
/** In days since 1970. */
const today = () => Math.floor(Date.now() / DAY_MS);
const idleEnd = () => new Date((today() + BROWSER_LIFETIME_DAYS) * DAY_MS);
const hyphenated = (hex: string) => hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
