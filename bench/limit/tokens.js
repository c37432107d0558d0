// @ts-nocheck
/** Signs access tokens for the limit, and remembers the verified ones as the service does. */
import crypto from 'node:crypto';
import { readFileSync } from 'node:fs';

const MAX_REMEMBERED_TOKENS = 5_000;
const [jwk] = JSON.parse(readFileSync(process.env.SIGNING_KEYS_FILE, 'utf8')).keys;
const privateKey = crypto.createPrivateKey({ key: jwk, format: 'jwk' });
const publicKey = crypto.createPublicKey(privateKey);
export const header = Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid: jwk.kid })).toString('base64url');

/** ES256. To convert DER costs less than the option `ieee-p1363` of node:crypto. */
export function signed(text) {
  const der = crypto.sign('sha256', Buffer.from(text), privateKey);
  const endOfR = 4 + der[3];
  const [r, s] = [der.subarray(4, endOfR), der.subarray(endOfR + 2)].map((integer) => integer.subarray(-32));
  const raw = Buffer.alloc(64);
  r.copy(raw, 32 - r.length);
  s.copy(raw, 64 - s.length);
  return raw.toString('base64url');
}

/** The claims of verified tokens. The older half is forgotten together. */
let [newer, older] = [new Map(), new Map()];

export function verified(token) {
  const claims = newer.get(token) ?? older.get(token) ?? verify(token);
  if (claims.exp <= Date.now() / 1000) throw new Error('expired');
  if (newer.size >= MAX_REMEMBERED_TOKENS / 2) [newer, older] = [new Map(), newer];
  newer.set(token, claims);
  return claims;
}

function verify(token) {
  const [head, payload, signature] = token.slice('dev:'.length).split('.');
  const raw = Buffer.from(signature, 'base64url');
  const integers = [raw.subarray(0, 32), raw.subarray(32)].flatMap((integer) => {
    const bytes = integer.subarray(integer.findIndex((byte) => byte > 0));
    const sign = bytes[0] >= 0x80 ? [0] : []; // of DER's positive integers
    return [0x02, sign.length + bytes.length, ...sign, ...bytes];
  });
  const der = Buffer.from([0x30, integers.length, ...integers]);
  const isSigned = head === header && crypto.verify('sha256', Buffer.from(`${head}.${payload}`), publicKey, der);
  if (!isSigned) throw new Error('forged');
  return JSON.parse(Buffer.from(payload, 'base64url'));
}
