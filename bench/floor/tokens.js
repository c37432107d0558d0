// @ts-check
/** Access tokens, ids and hashes of the floor. */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  hash,
  randomBytes,
  randomUUID,
  sign,
  verify,
} from 'node:crypto';
import { readFileSync } from 'node:fs';

const { SIGNING_KEYS_FILE = '' } = process.env;
const [jwk] = JSON.parse(readFileSync(SIGNING_KEYS_FILE, 'utf8')).keys;
const privateKey = createPrivateKey({ key: jwk, format: 'jwk' });
const publicKey = createPublicKey(privateKey);
const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid })).toString('base64url');

/**
 * @param {string} entity_id
 * @param {{ client_id: string, organization_id: string, grant_type: string }} of
 * @param {object} fields
 * @param {object} session the claims of its session
 */
export function tokenResponse(entity_id, of, fields, session) {
  return {
    access_token: accessToken(entity_id, of, session),
    entity_id,
    expires_in: 28_800,
    token_type: 'Bearer',
    ...fields,
  };
}

/**
 * @param {string} sub
 * @param {{ client_id: string, organization_id: string, grant_type: string }} of
 * @param {object} session
 */
function accessToken(sub, { client_id, organization_id, grant_type: gty }, session) {
  const iat = Math.floor(Date.now() / 1000);
  const claims = {
    iss: 'http://localhost',
    sub,
    aud: 'customer-api',
    client_id,
    organization_id,
    gty,
    ...session,
    iat,
    exp: iat + 28_800,
    jti: randomUUID(),
  };
  const signed = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `dev:${signed}.${raw(sign('sha256', Buffer.from(signed), privateKey)).toString('base64url')}`;
}

/** @param {string} bearer */
export function verified(bearer) {
  const [head, payload = '', signature = ''] = bearer.slice(4).split('.');
  const isValid =
    head === header &&
    verify('sha256', Buffer.from(`${head}.${payload}`), publicKey, der(Buffer.from(signature, 'base64url')));
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  if (!isValid || claims.exp <= Date.now() / 1000) throw new Error('invalid token');
  return claims;
}

/** The R and S of a signature in DER. Costs less than the option `dsaEncoding` (bench/parts.js). @param {Buffer} der */
export function raw(der) {
  const signature = Buffer.alloc(64);
  const r = /** @type {number} */ (der[3]);
  const s = /** @type {number} */ (der[5 + r]);
  der.copy(signature, Math.max(0, 32 - r), 4 + Math.max(0, r - 32), 4 + r);
  der.copy(signature, 32 + Math.max(0, 32 - s), 6 + r + Math.max(0, s - 32), 6 + r + s);
  return signature;
}

/** The opposite of `raw`. @param {Buffer} signature */
export function der(signature) {
  if (signature.length !== 64) throw new Error('invalid signature');
  const bytes = Buffer.allocUnsafe(72);
  const endOfR = writeInteger(signature, 0, bytes, 2);
  const end = writeInteger(signature, 32, bytes, endOfR);
  bytes[0] = 0x30;
  bytes[1] = end - 2;
  return bytes.subarray(0, end);
}

/** @param {Buffer} signature @param {number} from @param {Buffer} bytes @param {number} to */
function writeInteger(signature, from, bytes, to) {
  const end = from + 32;
  let start = from;
  while (start < end - 1 && signature[start] === 0) start++;
  let at = to + 2;
  if (/** @type {number} */ (signature[start]) >= 0x80) bytes[at++] = 0;
  at += signature.copy(bytes, at, start, end);
  bytes[to] = 0x02;
  bytes[to + 1] = at - to - 2;
  return at;
}

/** @param {string} text @param {'hex' | 'base64url'} [encoding] */
export function sha256(text, encoding = 'hex') {
  return hash('sha256', text, encoding);
}

export function uuidv7() {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(Date.now(), 0, 6);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return hyphenated(bytes.toString('hex'));
}

/**
 * The value of a browser's cookie with a new secret for a customer, and the hash to store.
 *
 * @param {string} browserId @param {string} entityId
 */
export function newSecret(browserId, entityId) {
  const random = randomBytes(32).toString('hex');
  const tag = createHmac('sha256', random).update(entityId).digest('hex').slice(0, 16);
  return { secret: `${browserId.replaceAll('-', '')}${random}${tag}`, secretHash: sha256(random) };
}

/** @param {string} secret the value of the cookie */
export function partsOfSecret(secret) {
  return { browserId: hyphenated(secret), random: secret.slice(32, 96), tag: secret.slice(96) };
}

/** The UUID of the first 32 characters. @param {string} hex */
function hyphenated(hex) {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`;
}

/** Today, in days since 1970. */
export const day = () => Math.floor(Date.now() / 86_400_000);

/** When the session of a browser ends that is used today. */
export const idleEnd = () => new Date((day() + 732) * 86_400_000);

/** @param {number} seconds */
export const later = (seconds) => new Date(Date.now() + seconds * 1000);
