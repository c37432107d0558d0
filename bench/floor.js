// @ts-check
/**
 * The floor: a server that gives the same responses as the service, with node:http, mysql2 and node:crypto only. It has
 * no framework, validation, registry, log, limits or deadline, and sends as few statements as correct responses need. A
 * run measures both servers and reports their ratio.
 */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  randomBytes,
  randomUUID,
  sign,
  timingSafeEqual,
  verify,
} from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import mysql from 'mysql2';

const { DATABASE_URL = '', SIGNING_KEYS_FILE = '', PORT = '0' } = process.env;
const [jwk] = JSON.parse(readFileSync(SIGNING_KEYS_FILE, 'utf8')).keys;
const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
const publicKey = { key: createPublicKey(privateKey), dsaEncoding: /** @type {const} */ ('ieee-p1363') };
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

const RECOGNISE_CUSTOMER = `
  SELECT browser.entity_id AS browser_id, browser.secret_hash, browser.last_seen_day, scoped.entity_id, scoped.generation
  FROM customer_identity presented
  JOIN customer_identity browser ON browser.entity_id = presented.browser_id
  LEFT JOIN customer_identity scoped
    ON scoped.browser_id = presented.browser_id AND scoped.organization_id = ? AND scoped.group_id = ?
  WHERE presented.entity_id = ?`;
const NEW_CUSTOMER = `INSERT INTO customer_identity
  (entity_id, browser_id, organization_id, group_id, secret_hash, last_seen_day, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`;
const REVOKED = `EXISTS (
  SELECT 1 FROM revocation
  WHERE (kind IN ('jti', 'family') AND value IN (?)) OR (kind = 'client' AND value = ? AND issued_before >= ?))`;
const ENDED = `
  SELECT (${REVOKED} OR EXISTS (SELECT 1 FROM customer_identity WHERE entity_id = ? AND generation > ?)) AS ended`;
const CUSTOMER_OF_AGENT = `
  SELECT generation FROM customer_identity WHERE entity_id = ? AND organization_id = ? AND NOT ${REVOKED}
    AND EXISTS (SELECT 1 FROM agent WHERE id = ? AND COALESCE(generation, 0) <= ?)`;
const NEW_CODE = `INSERT INTO one_time_code
  (hash, kind, client_id, subject, organization_id, code_challenge, made_with, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const CODE = `
  SELECT client_id, subject, organization_id, code_challenge, made_with, consumed_at,
    (SELECT group_id FROM customer_identity WHERE entity_id = subject) AS group_id
  FROM one_time_code WHERE hash = ?`;
const REDEEM = `
  UPDATE one_time_code SET consumed_at = COALESCE(consumed_at, CURRENT_TIMESTAMP(3)), consumed_by = ?, consumed_network = ?
  WHERE hash = ? AND expires_at > ? AND (consumed_at IS NULL OR consumed_by = ?)`;

const routes = new Map([
  ['POST /v2/customer/token', token],
  ['POST /v2/customer/identity_transfer', transfer],
  ['GET /v2/customer/info', info],
  ['POST /oauth2/introspect', introspect],
]);

const server = createServer((request, response) => {
  const route = routes.get(`${request.method} ${request.url}`);
  if (!route) return response.writeHead(404).end();
  let text = '';
  request.on('data', (chunk) => {
    text += chunk;
  });
  request.on('end', () => route(request, response, text));
});
server.listen(Number(PORT), '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  console.log(`port ${address.port}`);
});

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** @param {Request} request @param {Response} response @param {string} text */
function token(request, response, text) {
  const body = JSON.parse(text);
  if (body.grant_type === 'agent_token') return agentToken(request, response, body);
  if (body.grant_type === 'identity_token') return exchange(response, body);
  const [, entityId] = /__svc_cid=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
  const [, secret] = /__svc_cst=([^;]*)/.exec(request.headers.cookie ?? '') ?? [];
  if (entityId && secret) returningCustomer(body, entityId, secret, response);
  else newCustomer(body, response);
}

/** @param {any} body @param {string} entityId @param {string} secret @param {Response} response */
function returningCustomer(body, entityId, secret, response) {
  execute(response, RECOGNISE_CUSTOMER, [body.organization_id, '', entityId], ([row]) => {
    if (!timingSafeEqual(Buffer.from(row.secret_hash), Buffer.from(sha256(secret)))) throw new Error('wrong secret');
    respond(
      response,
      tokenResponse(row.entity_id, body, { organization_id: body.organization_id }),
      cookies(row.entity_id, secret),
    );
  });
}

/** @param {any} body @param {Response} response */
function newCustomer(body, response) {
  const entityId = uuidv7();
  const secret = randomBytes(32).toString('hex');
  const day = Math.floor(Date.now() / 86_400_000);
  const row = [entityId, entityId, body.organization_id, '', sha256(secret), day, new Date()];
  execute(response, NEW_CUSTOMER, row, () => {
    respond(
      response,
      tokenResponse(entityId, body, { organization_id: body.organization_id }),
      cookies(entityId, secret),
    );
  });
}

/** @param {Request} request @param {Response} response @param {any} body */
function agentToken(request, response, body) {
  const claims = verified(request.headers.authorization?.slice(7) ?? '');
  if (!claims.scope.split(' ').includes('customers:own')) throw new Error('missing scope');
  const { organization_id } = claims;
  const parameters = [body.entity_id, organization_id, ...revocationOf(claims), claims.sub, claims.gen];
  execute(response, CUSTOMER_OF_AGENT, parameters, ([customer]) => {
    if (!customer) throw new Error('ended, or unknown');
    const { sub, client_id, gen, jti } = claims;
    const lineage = { gen: customer.generation ?? 0, ancestors: [jti], act: { sub, client_id, gen } };
    const fields = { client_id: body.client_id, organization_id };
    respond(response, tokenResponse(body.entity_id, { ...body, organization_id }, fields, lineage));
  });
}

/** @param {Request} request @param {Response} response @param {string} text */
function transfer(request, response, text) {
  const body = JSON.parse(text);
  const claims = verified(request.headers.authorization?.slice(7) ?? '');
  execute(response, ENDED, endOf(claims), ([{ ended }]) => {
    if (ended !== 0) throw new Error('ended');
    const code = `dev:${randomBytes(32).toString('base64url')}`;
    const { jti, sub, client_id, iat, organization_id } = claims;
    const lineage = { gen: claims.gen, ancestors: [jti], transfers: 1 };
    const madeWith = JSON.stringify({ jti, sub, client_id, iat, lineage });
    const row = [sha256(code), 'transfer', body.client_id, sub, organization_id, null, madeWith, later(3_600)];
    execute(response, NEW_CODE, row, () => respond(response, { identity_transfer_token: code, expires_in: 3_600 }));
  });
}

/** @param {Response} response @param {any} body */
function exchange(response, body) {
  const hash = sha256(body.code);
  execute(response, CODE, [hash], ([code]) => {
    if (code.client_id !== body.client_id || code.consumed_at !== null) throw new Error('invalid code');
    const { lineage, ...bearer } = JSON.parse(code.made_with);
    execute(response, ENDED, endOf({ ...bearer, ...lineage, sub: code.subject }), ([{ ended }]) => {
      if (ended !== 0) throw new Error('ended');
      const attempt = randomUUID();
      const network = sha256(`${hash} ${response.req.socket.remoteAddress}`);
      execute(response, REDEEM, [attempt, network, hash, new Date(), attempt], ({ affectedRows }) => {
        if (affectedRows !== 1) throw new Error('another attempt was faster');
        const { client_id, subject, organization_id } = code;
        respond(
          response,
          tokenResponse(subject, { client_id, organization_id, grant_type: 'identity_token' }, { client_id }, lineage),
        );
      });
    });
  });
}

/** @param {Request} request @param {Response} response */
function info(request, response) {
  const access_token = request.headers.authorization?.slice(7) ?? '';
  const claims = verified(access_token);
  execute(response, ENDED, endOf(claims), ([{ ended }]) => {
    if (ended !== 0) throw new Error('ended');
    const { client_id, sub, exp, organization_id } = claims;
    const expires_in = exp - Math.floor(Date.now() / 1000);
    respond(response, { access_token, client_id, entity_id: sub, expires_in, organization_id, token_type: 'Bearer' });
  });
}

const SECRET = sha256('secret-of-the-chat-api');

/** @param {Request} request @param {Response} response @param {string} text */
function introspect(request, response, text) {
  const basic = Buffer.from(request.headers.authorization?.slice(6) ?? '', 'base64').toString();
  const secret = sha256(basic.slice(basic.indexOf(':') + 1));
  if (!timingSafeEqual(Buffer.from(secret), Buffer.from(SECRET)))
    throw new Error('wrong secret of the resource server');
  const claims = verified(JSON.parse(text).token);
  execute(response, ENDED, endOf(claims), ([{ ended }]) => {
    respond(response, ended !== 0 ? { active: false } : { active: true, token_type: 'Bearer', ...claims });
  });
}

/** @param {Response} response @param {string} sql @param {any[]} parameters @param {(result: any) => void} then */
function execute(response, sql, parameters, then) {
  pool.execute(sql, parameters, (error, result) => {
    try {
      if (error) throw error;
      then(result);
    } catch (failure) {
      console.error(failure);
      response.writeHead(500).end();
    }
  });
}

/** @param {Response} response @param {object} body @param {string[]} [setCookie] */
function respond(response, body, setCookie) {
  const text = JSON.stringify(body);
  response.writeHead(200, {
    ...(response.req.url !== '/oauth2/introspect' && { Vary: 'Origin' }),
    ...(setCookie && { 'Set-Cookie': setCookie }),
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': randomUUID(),
    'Content-Length': Buffer.byteLength(text),
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  response.end(text);
}

/** @param {string} entity_id @param {string} secret */
function cookies(entity_id, secret) {
  const expires = new Date(Date.now() + 63_072_000_000).toUTCString();
  const attributes = `; Max-Age=63072000; Path=/v2/customer; Domain=localhost; Expires=${expires}; HttpOnly; Secure; SameSite=None`;
  return [`__svc_cid=${entity_id}${attributes}`, `__svc_cst=${secret}${attributes}`];
}

/**
 * @param {string} entity_id
 * @param {{ client_id: string, organization_id: string, grant_type: string }} of
 * @param {object} fields
 * @param {object} [lineage]
 */
function tokenResponse(entity_id, of, fields, lineage) {
  return {
    access_token: accessToken(entity_id, of, lineage),
    entity_id,
    expires_in: 28_800,
    token_type: 'Bearer',
    ...fields,
  };
}

/**
 * @param {string} sub
 * @param {{ client_id: string, organization_id: string, grant_type: string }} of
 * @param {object} [lineage]
 */
function accessToken(sub, { client_id, organization_id, grant_type: gty }, lineage = { gen: 0 }) {
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    iss: 'http://localhost',
    sub,
    aud: 'customer-api',
    client_id,
    organization_id,
    gty,
    ...lineage,
    iat,
    exp: iat + 28_800,
    jti: randomUUID(),
  };
  const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `dev:${signed}.${raw(sign('sha256', Buffer.from(signed), privateKey)).toString('base64url')}`;
}

/** @param {string} bearer */
function verified(bearer) {
  const [head, payload = '', signature = ''] = bearer.slice(4).split('.');
  const isValid =
    head === header &&
    verify('sha256', Buffer.from(`${head}.${payload}`), publicKey, Buffer.from(signature, 'base64url'));
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  if (!isValid || claims.exp <= Date.now() / 1000) throw new Error('invalid token');
  return claims;
}

/** The parameters of REVOKED. @param {any} claims */
const revocationOf = ({ jti, client_id, iat }) => [jti, client_id, new Date(iat * 1000)];

/** The parameters of ENDED. @param {any} claims */
const endOf = (claims) => [...revocationOf(claims), claims.sub, claims.gen];

/** @param {number} seconds */
const later = (seconds) => new Date(Date.now() + seconds * 1000);

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
