// @ts-check
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { createTokenVerifier } from 'token-verifier';
import { median } from '../measure.js';

const ROUND_COUNT = 7;
const TOKEN_COUNT = 2_000;
const REVOCATION_COUNT = 10_000;

/**
 * Measures the processor time of `verify` and of `jwtVerify` of jose, with the same token again and with a new token each
 * time. The rounds take turns, and each figure is the median. A local server gives the keys and a feed of 10,000
 * revocations.
 *
 * @returns {Promise<import('../figures.js').Table>}
 */
export async function measureCalls() {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const keySet = { keys: [{ ...(await exportJWK(publicKey)), kid: 'key-1', alg: 'ES256', use: 'sig' }] };
  const server = createServer((request, response) => {
    if (request.url?.includes('wait=')) return; // a feed without news: the request waits
    response.end(JSON.stringify(request.url?.startsWith('/feed') ? feedPage() : keySet));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://127.0.0.1:${/** @type {import('node:net').AddressInfo} */ (server.address()).port}`;
  const expected = { issuer, audience: 'customer-api', typ: 'at+jwt', algorithms: ['ES256'] };
  const onStale = /** @type {const} */ ('reject');
  const revocations = { url: `${issuer}/feed`, id: 'api', secret: 'x', maxAgeSeconds: 60, onStale };
  const verifier = createTokenVerifier({ issuer, audience: 'customer-api', revocations });
  await verifier.ready();

  const tokens = await Promise.all(Array.from({ length: TOKEN_COUNT }, () => newToken(issuer, privateKey)));
  const [repeated = ''] = tokens;
  const ways = {
    'jwtVerify, same token': () => jwtVerify(repeated, publicKey, expected),
    'verify, same token': () => verifier.verify(repeated),
    'jwtVerify, new tokens': (/** @type {number} */ index) => jwtVerify(tokens[index] ?? '', publicKey, expected),
    // more tokens than the cache has: each one is new when its turn comes again
    'verify, new tokens': (/** @type {number} */ index) => verifier.verify(tokens[index] ?? ''),
  };
  /** @type {Record<string, number[]>} */
  const rounds = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = 0; round <= ROUND_COUNT; round++) {
    for (const [name, call] of Object.entries(ways)) {
      const microseconds = await cpuPerCall(call);
      if (round > 0) rounds[name]?.push(microseconds); // the first round warms up
    }
  }
  verifier.close();
  server.closeAllConnections();
  server.close();
  return Object.fromEntries(
    Object.entries(rounds).map(([name, values]) => [name, { 'CPU µs': Number(median(values).toFixed(1)) }]),
  );
}

function feedPage() {
  const revocations = Array.from({ length: REVOCATION_COUNT }, () => ({
    kind: 'session',
    value: randomUUID(),
    epoch: 1,
    expires_at: new Date(Date.now() + 86_400_000).toISOString(),
  }));
  return { revocations, cursor: '1', complete: true };
}

/** @param {string} issuer @param {Parameters<SignJWT['sign']>[0]} privateKey */
function newToken(issuer, privateKey) {
  const ids = { client_id: 'site', organization_id: randomUUID(), sid: randomUUID() };
  return new SignJWT({ ...ids, gen: Date.now(), ep: 0, gty: 'identity_token' })
    .setProtectedHeader({ typ: 'at+jwt', alg: 'ES256', kid: 'key-1' })
    .setIssuer(issuer)
    .setAudience('customer-api')
    .setSubject(randomUUID())
    .setJti(randomUUID())
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(privateKey);
}

/** One call after the other. All threads of the process count. @param {(index: number) => Promise<unknown>} call */
async function cpuPerCall(call) {
  const before = process.cpuUsage();
  for (let index = 0; index < TOKEN_COUNT; index++) await call(index);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / TOKEN_COUNT;
}
