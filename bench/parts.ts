/**
 * `npm run bench:parts`: measures the ways to sign, to verify and to hash a token, in processor time of the
 * process. The service uses the first of each. Takes some seconds.
 */
import { createHash, createVerify, generateKeyPairSync, hash, sign, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { derSignature, rawSignature } from '../src/access-token/access-tokens.js';
import { measureCalls } from './support/measure.js';
import { benchmark } from './support/setup.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const TEXT = 'x'.repeat(600);
const DATA = Buffer.from(TEXT);
const SIGNATURE = rawSignature(sign('sha256', DATA, privateKey));
const dsaEncoding = 'ieee-p1363';
const verifyInPool = promisify((signature: Buffer, done: (error: Error | null, isValid: boolean) => void) =>
  verify('sha256', DATA, publicKey, signature, done),
);
const WAYS = {
  'sign, DER converted to R and S': () => rawSignature(sign('sha256', DATA, privateKey)),
  'sign, ieee-p1363': () => sign('sha256', DATA, { key: privateKey, dsaEncoding }),
  'verify, R and S converted to DER': () => verify('sha256', DATA, publicKey, derSignature(SIGNATURE)),
  'verify, ieee-p1363': () => verify('sha256', DATA, { key: publicKey, dsaEncoding }, SIGNATURE),
  'verify as a stream': () => createVerify('sha256').update(DATA).verify(publicKey, derSignature(SIGNATURE)),
  'verify in the thread pool': () => verifyInPool(derSignature(SIGNATURE)),
  'SHA-256 by hash()': () => hash('sha256', TEXT),
  'SHA-256 by createHash()': () => createHash('sha256').update(TEXT).digest('hex'),
};

await benchmark('npm run bench:parts', '64M', async () => [await measureCalls(WAYS, { rounds: 9, calls: 500 })]);
