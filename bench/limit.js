// @ts-nocheck
/**
 * The limit: a server that gives the same responses as the service, and does only what no program can leave out:
 * node:http, the body, the cookies, hashes, statements in the same batches, and the signature. It has no framework,
 * validation, registry, log, limits or deadline. `npm run bench` compares the processor time of the service with it.
 */
import crypto from 'node:crypto';
import { createServer } from 'node:http';
import { v7 as uuidv7 } from 'uuid';
import { batchedInserts, batchedSelect, execute } from './limit/statements.js';
import { header, signed, verified } from './limit/tokens.js';

const DAY_MS = 86_400_000;
const IDLE_DAYS = 732;
const TOKEN_LIFETIME_SECONDS = 28_800;
const COOKIE_LIFETIME_SECONDS = 63_072_000;

const AGENT_COLUMNS = 'session.agent_session_id, session.agent_epoch, agent_id, agent_session.client_id, issuer';
const AGENT_JOIN = `LEFT JOIN agent_session
  ON agent_session.id = session.agent_session_id AND agent_session.epoch = session.agent_epoch`;
const recognize = batchedSelect(
  `browser.browser_id, browser.secret_hash, session.id, session.kind, session.customer_id, session.epoch,
    session.seen_day, session.signed_in_day, session.expires_at, generation, has_user, ${AGENT_COLUMNS}`,
  `browser LEFT JOIN session
    ON session.browser_id = browser.browser_id AND session.organization_id = ? AND session.group_id = ?
    LEFT JOIN customer ON customer.entity_id = session.customer_id ${AGENT_JOIN} WHERE browser.browser_id = ?`,
);
const findCustomer = batchedSelect(
  'generation',
  `customer JOIN agent_session ON agent_session.id = ? AND agent_session.epoch = ?
    WHERE entity_id = ? AND customer.organization_id = ? AND erased_at IS NULL AND linked_to IS NULL`,
);
const findCode = batchedSelect(
  `session.id, session.kind, session.customer_id, session.epoch, session.code_challenge, session.expires_at,
    session.client_id AS code_client_id, customer.organization_id, customer.group_id, generation, ${AGENT_COLUMNS}`,
  `session JOIN customer ON customer.entity_id = session.customer_id ${AGENT_JOIN} WHERE session.code_hash = ?`,
);
const isValid = batchedSelect('1 AS is_valid', 'session WHERE id = ? AND epoch = ?');
const insertVisitor = batchedInserts([
  'customer (entity_id, organization_id, group_id, creator, generation, version, has_user, seen_day, created_at)',
  'browser (browser_id, secret_hash, version)',
  `session (id, kind, customer_id, organization_id, group_id, browser_id, depth, epoch, seen_day, created_at,
    expires_at)`,
]);
const NOTE_DAY = 'UPDATE session SET seen_day = ?, expires_at = ? WHERE id = ? AND browser_id = ? AND seen_day = ?';
const REDEEM = `UPDATE session SET kind = 'moved', redeemed_at = CURRENT_TIMESTAMP(3), redeemed_network = ?,
  expires_at = ? WHERE id = ? AND kind = 'code' AND expires_at > ?`;

/** The last response to a returning customer, for the paths `/echo` and `/parts`. */
let sample = { content: { body: {} } };

createServer({ keepAliveTimeout: 75_000 }, (request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  const fail = (error) => response.writeHead(500).end(String(error.stack));
  request.on('end', () => respondTo(request, text).then((content) => respond(response, content), fail));
}).listen(Number(process.env.PORT), '127.0.0.1');

async function respondTo({ url, headers, socket }, text) {
  if (url === '/v2/customer/info') return info(headers.authorization.slice('Bearer '.length));
  if (url === '/parts') {
    await recognize(sample.parameters);
    signed(header);
  }
  if (url !== '/v2/customer/token') return sample.content;
  const body = JSON.parse(text);
  if (body.grant_type === 'agent_token')
    return agentToken(body, verified(headers.authorization.slice('Bearer '.length)));
  if (body.grant_type === 'identity_token') return redeem(body, socket.remoteAddress);
  const [, entityId] = /__svc_cid=([^;]*)/.exec(headers.cookie) ?? [];
  const [, cookie] = /__svc_cst=([^;]*)/.exec(headers.cookie) ?? [];
  return entityId && cookie ? returningCustomer(body, entityId, cookie) : newCustomer(body);
}

async function returningCustomer({ client_id, organization_id }, entityId, cookie) {
  const [, browser, secret, tag] = /^(.{32})(.{64})(.{16})$/.exec(cookie);
  assertEqual(tag, tagOf(secret, entityId));
  const browserId = browser.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const parameters = [organization_id, '', browserId];
  const row = await recognize(parameters);
  assertEqual(row.secret_hash, crypto.hash('sha256', secret));
  if (row.customer_id !== entityId || row.expires_at <= new Date()) throw new Error('another customer, or expired');
  if (row.seen_day !== today()) await execute(NOTE_DAY, [today(), idleEnd(), row.id, browserId, row.seen_day]);
  const claims = { client_id, organization_id, gty: 'cookie', gen: row.generation, sid: row.id, ep: row.epoch };
  const content = { body: tokenResponse(entityId, claims, { organization_id }), cookies: cookiesOf(entityId, cookie) };
  sample = { content, parameters };
  return content;
}

async function newCustomer({ client_id, organization_id }) {
  const [entityId, browserId, sid] = [uuidv7(), uuidv7(), uuidv7()];
  const secret = crypto.randomBytes(32).toString('hex');
  const now = new Date();
  await insertVisitor([
    [entityId, organization_id, '', 'browser', now.getTime(), 0, 0, today(), now],
    [browserId, crypto.hash('sha256', secret), 0],
    [sid, 'own', entityId, organization_id, '', browserId, 0, 0, today(), now, idleEnd()],
  ]);
  const claims = { client_id, organization_id, gty: 'cookie', gen: now.getTime(), sid, ep: 0 };
  const cookie = `${browserId.replaceAll('-', '')}${secret}${tagOf(secret, entityId)}`;
  return { body: tokenResponse(entityId, claims, { organization_id }), cookies: cookiesOf(entityId, cookie) };
}

async function agentToken({ client_id, entity_id }, { sub, sid, ep, scope, organization_id, ...agent }) {
  if (!scope.split(' ').includes('customers:own')) throw new Error('missing scope');
  const { generation } = await findCustomer([sid, ep, entity_id, organization_id]);
  const act = { sub, sid, ep, client_id: agent.client_id };
  const claims = { client_id, organization_id, gty: 'agent_token', gen: generation, act };
  return { body: tokenResponse(entity_id, claims, { client_id, organization_id }) };
}

async function redeem({ client_id, code }, ip) {
  const codeHash = crypto.hash('sha256', code);
  const row = await findCode([codeHash]);
  if (row.kind !== 'code' || row.code_client_id !== client_id || row.code_challenge) throw new Error('invalid code');
  const network = crypto.createHmac('sha256', header).update(`${codeHash} ${ip}`).digest('hex');
  const end = new Date(Date.now() + TOKEN_LIFETIME_SECONDS * 1000);
  const { affectedRows } = await execute(REDEEM, [network, end, row.id, new Date()]);
  if (affectedRows !== 1) throw new Error('another request was faster, or the code has ended');
  const session = { gen: row.generation, sid: row.id, ep: row.epoch };
  const claims = { client_id, organization_id: row.organization_id, gty: 'identity_token', ...session };
  return { body: tokenResponse(row.customer_id, claims, { client_id }) };
}

async function info(token) {
  const { client_id, sid, ep, sub, exp, organization_id } = verified(token);
  if (!(await isValid([sid, ep]))) throw new Error('ended');
  const expires_in = exp - Math.floor(Date.now() / 1000);
  return { body: { client_id, entity_id: sub, expires_in, organization_id, token_type: 'Bearer' } };
}

function tokenResponse(sub, claims, fields) {
  const iat = Math.floor(Date.now() / 1000);
  const times = { iat, exp: iat + TOKEN_LIFETIME_SECONDS, jti: crypto.randomUUID() };
  const payload = JSON.stringify({ iss: 'http://localhost', sub, aud: 'customer-api', ...claims, ...times });
  const text = `${header}.${Buffer.from(payload).toString('base64url')}`;
  const access_token = `dev:${text}.${signed(text)}`;
  return { access_token, entity_id: sub, expires_in: TOKEN_LIFETIME_SECONDS, token_type: 'Bearer', ...fields };
}

function respond(response, { body, cookies }) {
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
}

function cookiesOf(entityId, cookie) {
  const expires = new Date(Date.now() + COOKIE_LIFETIME_SECONDS * 1000).toUTCString();
  const lifetime = `Max-Age=${COOKIE_LIFETIME_SECONDS}; Path=/v2/customer; Domain=localhost; Expires=${expires}`;
  const attributes = `; ${lifetime}; HttpOnly; Secure; SameSite=None; Partitioned`;
  return [`__svc_cid=${entityId}${attributes}`, `__svc_cst=${cookie}${attributes}`];
}

function assertEqual(one, other) {
  if (!crypto.timingSafeEqual(Buffer.from(one), Buffer.from(other))) throw new Error('wrong secret');
}

const tagOf = (secret, entityId) => crypto.createHmac('sha256', secret).update(entityId).digest('hex').slice(0, 16);
const today = () => Math.floor(Date.now() / DAY_MS);
const idleEnd = () => new Date((today() + IDLE_DAYS) * DAY_MS);
