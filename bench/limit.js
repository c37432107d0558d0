// @ts-nocheck
/**
 * The limit: a server that gives the same responses as the service, and does only what no program can leave out:
 * node:http, the body, the cookies, hashes, statements in the same batches, and the signature. It has no framework,
 * validation, registry, log, limits or deadline, and ends at the first error.
 */
import assert from 'node:assert';
import crypto from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import mysql from 'mysql2/promise';
import { v7 as uuidv7 } from 'uuid';

const [DAY_MS, IDLE_DAYS] = [86_400_000, 732];
const [TOKEN_LIFETIME_SECONDS, COOKIE_LIFETIME_SECONDS] = [28_800, 63_072_000];
const BATCH_SIZES = [1, 2, 4, 8, 16];

const [jwk] = JSON.parse(readFileSync(process.env.SIGNING_KEYS_FILE, 'utf8')).keys;
const privateKey = crypto.createPrivateKey({ key: jwk, format: 'jwk' });
const publicKey = crypto.createPublicKey(privateKey);
const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid })).toString('base64url');
const pool = mysql.createPool({ uri: process.env.DATABASE_URL.replace('mariadb:', 'mysql:'), timezone: 'Z' });

const JOINS = `JOIN customer c ON c.entity_id = s.customer_id
  LEFT JOIN agent_session a ON a.id = s.agent_session_id AND a.epoch = s.agent_epoch`;
const recognize = batchedSelect(`b.browser_id, secret_hash, s.id, s.kind, s.customer_id, s.epoch, s.seen_day,
    signed_in_day, s.expires_at, generation, has_user, agent_session_id, agent_epoch, agent_id, a.client_id, issuer
  FROM browser b LEFT JOIN session s ON s.browser_id = b.browser_id AND s.organization_id = ? AND s.group_id = ?
    LEFT ${JOINS} WHERE b.browser_id = ?`);
const findCode = batchedSelect(`s.id, s.kind, s.customer_id, s.epoch, s.code_challenge, s.expires_at, s.client_id,
    c.organization_id, c.group_id, generation, agent_session_id, agent_epoch, agent_id, a.client_id AS agent, issuer
  FROM session s ${JOINS} WHERE s.code_hash = ?`);
const findCustomer = batchedSelect(`generation FROM customer c JOIN agent_session a ON a.id = ? AND a.epoch = ?
  WHERE entity_id = ? AND c.organization_id = ? AND erased_at IS NULL AND linked_to IS NULL`);
const isValid = batchedSelect('1 AS is_valid FROM session WHERE id = ? AND epoch = ?');
const REDEEM = `UPDATE session SET kind = 'moved', redeemed_at = CURRENT_TIMESTAMP(3), redeemed_network = ?,
  expires_at = ? WHERE id = ? AND kind = 'code' AND expires_at > ?`;
const VISITOR_TABLES = [
  'customer (entity_id, organization_id, group_id, creator, generation, version, has_user, seen_day, created_at)',
  'browser (browser_id, secret_hash, version)',
  `session (id, kind, customer_id, organization_id, group_id, browser_id, depth, epoch, seen_day, created_at,
    expires_at)`,
];

/** The last response to a returning customer, for the paths `/echo` and `/parts`. */
let sample = { content: { body: {} } };

createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', async () => {
    const { body, cookies } = await contentFor(request, chunks);
    const text = JSON.stringify(body);
    response.writeHead(200, {
      Vary: 'Origin',
      ...(cookies && { 'Set-Cookie': cookies }),
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': crypto.randomUUID(),
      'Cache-Control': 'no-store',
      'Content-Length': Buffer.byteLength(text),
      'Content-Type': 'application/json; charset=utf-8',
    });
    response.end(text);
  });
}).listen(Number(process.env.PORT), '127.0.0.1');

async function contentFor({ url, headers, socket }, chunks) {
  if (url === '/v2/customer/info') return info(verifiedTokens.memo(headers.authorization));
  if (url === '/parts') await Promise.all([recognize(sample.parameters), signed(sample.content.body.access_token)]);
  if (url !== '/v2/customer/token') return sample.content;
  const body = JSON.parse(Buffer.concat(chunks));
  if (body.grant_type === 'agent_token') return agentToken(body, verifiedTokens.memo(headers.authorization));
  if (body.grant_type === 'identity_token') return redeem(body, socket.remoteAddress);
  return headers.cookie ? returningCustomer(body, headers.cookie) : newCustomer(body);
}

async function returningCustomer({ client_id, organization_id }, cookies) {
  const [, entityId] = /__svc_cid=([^;]*)/.exec(cookies);
  const [, cookie] = /__svc_cst=([^;]*)/.exec(cookies);
  const browserId = cookie.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
  const parameters = [organization_id, '', browserId];
  const row = await recognize(parameters);
  assert(row.secret_hash === crypto.hash('sha256', cookie.slice(32, 96)) && row.customer_id === entityId);
  const claims = { client_id, organization_id, gty: 'cookie', gen: row.generation, sid: row.id, ep: row.epoch };
  const content = tokenResponse(entityId, claims, { organization_id }, cookie);
  sample = { content, parameters };
  return content;
}

async function newCustomer({ client_id, organization_id }) {
  const [entityId, browserId, sid] = [uuidv7(), uuidv7(), uuidv7()];
  const secret = crypto.randomBytes(32).toString('hex');
  const tag = crypto.createHmac('sha256', secret).update(entityId).digest('hex').slice(0, 16);
  const [now, today] = [new Date(), Math.floor(Date.now() / DAY_MS)];
  await insertVisitor([
    [entityId, organization_id, '', 'browser', now.getTime(), 0, 0, today, now],
    [browserId, crypto.hash('sha256', secret), 0],
    [sid, 'own', entityId, organization_id, '', browserId, 0, 0, today, now, new Date((today + IDLE_DAYS) * DAY_MS)],
  ]);
  const claims = { client_id, organization_id, gty: 'cookie', gen: now.getTime(), sid, ep: 0 };
  return tokenResponse(entityId, claims, { organization_id }, browserId.replaceAll('-', '') + secret + tag);
}

async function agentToken({ client_id, entity_id }, { sub, sid, ep, organization_id, client_id: agentClient }) {
  const { generation } = await findCustomer([sid, ep, entity_id, organization_id]);
  const claims = { gty: 'agent_token', gen: generation, act: { sub, sid, ep, client_id: agentClient } };
  return tokenResponse(entity_id, { client_id, organization_id, ...claims }, { client_id, organization_id });
}

async function redeem({ client_id, code }, ip) {
  const codeHash = crypto.hash('sha256', code);
  const { id, customer_id, organization_id, generation, epoch } = await findCode([codeHash]);
  const network = crypto.createHmac('sha256', header).update(`${codeHash} ${ip}`).digest('hex');
  const end = new Date(Date.now() + TOKEN_LIFETIME_SECONDS * 1000);
  const [{ affectedRows }] = await pool.execute(REDEEM, [network, end, id, new Date()]);
  assert(affectedRows === 1);
  const claims = { client_id, organization_id, gty: 'identity_token', gen: generation, sid: id, ep: epoch };
  return tokenResponse(customer_id, claims, { client_id });
}

async function info({ client_id, sid, ep, sub, exp, organization_id }) {
  const expires_in = exp - Math.floor(Date.now() / 1000);
  assert(expires_in > 0 && (await isValid([sid, ep])));
  return { body: { client_id, entity_id: sub, expires_in, organization_id, token_type: 'Bearer' } };
}

function tokenResponse(entity_id, ofGrant, fields, cookie) {
  const [iat, expires_in] = [Math.floor(Date.now() / 1000), TOKEN_LIFETIME_SECONDS];
  const claims = { iss: 'http://localhost', sub: entity_id, aud: 'customer-api', ...ofGrant };
  const payload = JSON.stringify({ ...claims, iat, exp: iat + expires_in, jti: crypto.randomUUID() });
  const text = `${header}.${Buffer.from(payload).toString('base64url')}`;
  const body = { access_token: `dev:${text}.${signed(text)}`, entity_id, expires_in, token_type: 'Bearer', ...fields };
  if (!cookie) return { body };
  const expires = new Date((iat + COOKIE_LIFETIME_SECONDS) * 1000).toUTCString();
  const lifetime = `Max-Age=${COOKIE_LIFETIME_SECONDS}; Path=/v2/customer; Domain=localhost; Expires=${expires}`;
  const attributes = `; ${lifetime}; HttpOnly; Secure; SameSite=None; Partitioned`;
  return { body, cookies: [`__svc_cid=${entity_id}${attributes}`, `__svc_cst=${cookie}${attributes}`] };
}

/** ES256. To convert DER costs less than the option `ieee-p1363` of node:crypto. */
function signed(text) {
  const der = crypto.sign('sha256', Buffer.from(text), privateKey);
  const endOfR = 4 + der[3];
  const [r, s] = [der.subarray(4, endOfR), der.subarray(endOfR + 2)].map((integer) => integer.toString('hex'));
  return Buffer.from(r.slice(-64).padStart(64, '0') + s.slice(-64).padStart(64, '0'), 'hex').toString('base64url');
}

const verifiedTokens = new LRUCache({ max: 5_000, memoMethod: verify });

function verify(authorization) {
  const [head, payload, signature] = authorization.slice('Bearer dev:'.length).split('.');
  const integers = Buffer.from(signature, 'base64url').toString('hex').match(/.{64}/g);
  // DER leaves out zero bytes at the beginning, but for one before a first bit that is set
  const shortest = integers.map((hex) => hex.replace(/^(00)+/, '').replace(/^[89a-f]/, '00$&'));
  const der = Buffer.from(withLength('30', shortest.map((hex) => withLength('02', hex)).join('')), 'hex');
  assert(head === header && crypto.verify('sha256', Buffer.from(`${head}.${payload}`), publicKey, der));
  return JSON.parse(Buffer.from(payload, 'base64url'));
}

const withLength = (tag, hex) => `${tag}${(hex.length / 2).toString(16)}${hex}`;

/** A SELECT of one row. */
function batchedSelect(text) {
  const select = (_, position) => `(SELECT ${position} AS position, ${text})`;
  const texts = BATCH_SIZES.map((size) => Array.from({ length: size }, select).join(' UNION ALL '));
  return batched(async (uses) => {
    const larger = BATCH_SIZES.findIndex((size) => size >= uses.length);
    const padding = Array(BATCH_SIZES[larger] - uses.length).fill(uses[0]);
    const [rows] = await pool.execute(texts[larger], [...uses, ...padding].flat());
    return uses.map((_, position) => rows.find((row) => row.position === position));
  });
}

const insertVisitor = batched(async (visitors) => {
  const connection = await pool.getConnection();
  await connection.beginTransaction();
  for (const [index, table] of VISITOR_TABLES.entries()) {
    const rows = visitors.map((visitor) => visitor[index]);
    const values = rows.map((row) => `(${row.map(() => '?')})`);
    await connection.execute(`INSERT INTO ${table} VALUES ${values}`, rows.flat());
  }
  await connection.commit();
  connection.release();
});

/** Calls `send` once for up to 16 uses of one tick. */
function batched(send) {
  let [uses, results] = [[]];
  return async (use) => {
    if (uses.length % 16 === 0) {
      const batch = [];
      results = setImmediate().then(() => send(batch.splice(0)));
      uses = batch;
    }
    const position = uses.push(use) - 1;
    return (await results)?.[position];
  };
}
