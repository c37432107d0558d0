// @ts-check
/** The ways to sign and to verify with ES256, and to hash a token, in processor time of the process. */
import { createHash, createVerify, generateKeyPairSync, hash, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { der, raw } from '../floor/tokens.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const text = 'x'.repeat(600);
const data = Buffer.from(text);
const signatureInDer = sign('sha256', data, privateKey);
const signature = raw(signatureInDer);
const dsaEncoding = /** @type {const} */ ('ieee-p1363');
const withEncoding = { key: publicKey, dsaEncoding };
const pem = publicKey.export({ type: 'spki', format: 'pem' });
const verifyInPool = promisify(
  (
    /** @type {Parameters<typeof verify>[2]} */ key,
    /** @type {Buffer} */ bytes,
    /** @type {(error: Error | null, isValid: boolean) => void} */ done,
  ) => verify('sha256', data, key, bytes, done),
);

/** @type {Record<string, () => unknown>} Each returns false, or a promise of false, if it fails. */
export const SIGNATURES = {
  'sign, DER converted to R and S: the floor': () => raw(sign('sha256', data, privateKey)).length === 64,
  'sign, ieee-p1363': () => sign('sha256', data, { key: privateKey, dsaEncoding }).length === 64,
  'verify, R and S converted to DER: the floor': () => verify('sha256', data, publicKey, der(signature)),
  'verify, DER given': () => verify('sha256', data, publicKey, signatureInDer),
  'verify, ieee-p1363': () => verify('sha256', data, withEncoding, signature),
  'verify, ieee-p1363, key in PEM': () => verify('sha256', data, { key: pem, dsaEncoding }, signature),
  'verify as a stream, converted to DER': () => createVerify('sha256').update(data).verify(publicKey, der(signature)),
  'verify as a stream, ieee-p1363': () => createVerify('sha256').update(data).verify(withEncoding, signature),
  'verify in the thread pool, converted to DER': () => verifyInPool(publicKey, der(signature)),
  'verify in the thread pool, ieee-p1363': () => verifyInPool(withEncoding, signature),
  'SHA-256 by hash(): the floor': () => hash('sha256', text, 'hex').length === 64,
  'SHA-256 by createHash()': () => createHash('sha256').update(text).digest('hex').length === 64,
};
