// @ts-check
/**
 * The floor: what the service does for a customer, with nothing but node:http, mysql2 and node:crypto. No framework, no
 * validation, no registry, no log. The service is measured as a ratio to it, in the same run.
 */
import { createHash, createPrivateKey, randomBytes, randomUUID, sign, timingSafeEqual } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import mysql from 'mysql2';

const { DATABASE_URL = '', SIGNING_KEYS_FILE = '', PORT = '0' } = process.env;
const [jwk] = JSON.parse(readFileSync(SIGNING_KEYS_FILE, 'utf8')).keys;
const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid })).toString('base64url');
const { hostname, port, username, password, pathname } = new URL(DATABASE_URL);
const pool = mysql.createPool({
  host: hostname,
  port: Number(port),
  user: username,
  password,
  database: pathname.slice(1),
  timezone: 'Z',
  connectionLimit: 10,
});

const RECOGNISE = `
  SELECT browser.entity_id AS browser_id, browser.secret_hash, browser.last_seen_day, here.entity_id
  FROM customer_identity shown
  JOIN customer_identity browser ON browser.entity_id = shown.browser_id
  LEFT JOIN customer_identity here
    ON here.browser_id = shown.browser_id AND here.organization_id = ? AND here.group_id = ?
  WHERE shown.entity_id = ?`;
const INSERT = `INSERT INTO customer_identity
  (entity_id, browser_id, organization_id, group_id, secret_hash, last_seen_day, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`;

const server = createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => {
    const body = JSON.parse(text);
    const [, entityId] = /__svc_cid=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
    const [, secret] = /__svc_cst=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
    if (entityId && secret) returning(body, entityId, secret, response);
    else created(body, response);
  });
});
server.listen(Number(PORT), '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  console.log(`port ${address.port}`);
});

/** @param {any} body @param {string} entityId @param {string} secret @param {import('node:http').ServerResponse} response */
function returning(body, entityId, secret, response) {
  pool.execute(RECOGNISE, [body.organization_id, '', entityId], (error, rows) => {
    const [row] = /** @type {any[]} */ (rows ?? []);
    if (error || !timingSafeEqual(Buffer.from(row.secret_hash), Buffer.from(sha256(secret)))) {
      response.writeHead(500).end();
      return;
    }
    answer(body, row.entity_id, secret, response);
  });
}

/** @param {any} body @param {import('node:http').ServerResponse} response */
function created(body, response) {
  const entityId = uuidv7();
  const secret = randomBytes(32).toString('hex');
  const day = Math.floor(Date.now() / 86_400_000);
  pool.execute(INSERT, [entityId, entityId, body.organization_id, '', sha256(secret), day, new Date()], (error) => {
    if (error) response.writeHead(500).end();
    else answer(body, entityId, secret, response);
  });
}

/** @param {any} body @param {string} entityId @param {string} secret @param {import('node:http').ServerResponse} response */
function answer(body, entityId, secret, response) {
  const text = JSON.stringify({
    access_token: `dev:${token(entityId, body.client_id, body.organization_id)}`,
    entity_id: entityId,
    expires_in: 28_800,
    token_type: 'Bearer',
    organization_id: body.organization_id,
  });
  const expires = new Date(Date.now() + 63_072_000_000).toUTCString();
  const attributes = `; Max-Age=63072000; Path=/v2/customer; Domain=localhost; Expires=${expires}; HttpOnly; Secure; SameSite=None`;
  response.writeHead(200, {
    Vary: 'Origin',
    'Set-Cookie': [`__svc_cid=${entityId}${attributes}`, `__svc_cst=${secret}${attributes}`],
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': randomUUID(),
    'Content-Length': Buffer.byteLength(text),
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  response.end(text);
}

/** @param {string} sub @param {string} client_id @param {string} organization_id */
function token(sub, client_id, organization_id) {
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    iss: 'http://localhost',
    sub,
    aud: 'customer-api',
    client_id,
    organization_id,
    iat,
    exp: iat + 28_800,
    jti: randomUUID(),
  };
  const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${signed}.${raw(sign('sha256', Buffer.from(signed), privateKey)).toString('base64url')}`;
}

/** @param {Buffer} der */
function raw(der) {
  const signature = Buffer.alloc(64);
  const r = /** @type {number} */ (der[3]);
  const s = /** @type {number} */ (der[5 + r]);
  der.copy(signature, Math.max(0, 32 - r), 4 + Math.max(0, r - 32), 4 + r);
  der.copy(signature, 32 + Math.max(0, 32 - s), 6 + r + Math.max(0, s - 32), 6 + r + s);
  return signature;
}

/** @param {string} text */
function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}

function uuidv7() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
