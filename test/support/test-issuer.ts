import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT } from 'jose';
import { ACME } from './test-registry.js';

interface Key {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  jwk: object;
}

/** A private key in JWK format, which an issuer might publish by mistake. */
export function privateKey(kid: string): object {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' };
}

const json = (body: object): RequestListener => {
  return (_, response) => void response.end(JSON.stringify(body));
};

/** Responses of an issuer without a usable key set, for `TestIssuer.broken`. */
export const UNUSABLE_RESPONSES: [string, RequestListener][] = [
  ['500', (_, response) => void response.writeHead(500).end('{"keys":[]}')],
  ['a redirect to its keys', ({ url }, response) => void response.writeHead(302, { Location: `${url}-moved` }).end()],
  ['a page', (_, response) => void response.end('<!doctype html>')],
  ['no key set', json({ keys: 'none' })],
  ['half a response', (_, response) => void response.writeHead(200, { 'Content-Length': 100 }).end('{')],
  ['a private key', json({ keys: [privateKey('key-1')] })],
  ['a symmetric key', json({ keys: [{ kty: 'oct', k: 'c2VjcmV0', kid: 'x', alg: 'HS256' }] })],
  ['nothing for longer than a second', () => undefined],
  [
    'a byte from time to time',
    (_, response) => {
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(timer));
    },
  ],
  ['a megabyte', (_, response) => void response.end(`{"keys":[]}${' '.repeat(1_000_000)}`)],
  [
    'a megabyte that is compressed to a kilobyte',
    (_, response) =>
      void response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(gzipSync(`{"keys":[]}${' '.repeat(1_000_000)}`)),
  ],
  [
    'without end',
    (_, response) => {
      const more = () => void (!response.destroyed && response.write('x'.repeat(65_536), more));
      more();
    },
  ],
];

/** Another authorization server. It signs agent tokens and serves its public keys over HTTP. */
export class TestIssuer {
  static readonly AUDIENCE = 'https://chat.example';
  readonly issuer = 'https://idp.example';
  /** The number of requests for the keys. */
  requests = 0;
  keys: Key[] = [];
  /** Replaces the response with the keys, to simulate a broken issuer. */
  broken: RequestListener | undefined;
  private server: Server | undefined;
  private port = 0;
  private keyCount = 0;

  static async start(algorithm = 'ES256'): Promise<TestIssuer> {
    const issuer = new TestIssuer();
    await issuer.addKey(algorithm);
    await issuer.start();
    return issuer;
  }

  /** The entry of the issuer in TRUSTED_AGENT_ISSUERS. */
  trust(more: object = {}): Record<string, unknown> {
    return {
      ...{ issuer: this.issuer, jwks_uri: `http://127.0.0.1:${this.port}/keys`, audience: TestIssuer.AUDIENCE },
      ...{ algorithms: ['ES256'], typ: 'at+jwt', organizations: [ACME], ...more },
    };
  }

  /** Adds a key, which signs from now on. The older keys stay published. */
  async addKey(alg = 'ES256'): Promise<Key> {
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    const kid = `key-${++this.keyCount}`;
    const key = { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
    this.keys.push(key);
    return key;
  }

  /** Signs a token with the given claims and header fields. A claim that is `undefined` is omitted. */
  sign(now: number, claims: object = {}, header: object = {}, key = this.keys.at(-1) as Key): Promise<string> {
    const seconds = Math.floor(now / 1000);
    const all = {
      ...{ iss: this.issuer, sub: 'agent-7', aud: TestIssuer.AUDIENCE, client_id: 'crm', jti: crypto.randomUUID() },
      ...{ iat: seconds, exp: seconds + 3600, organization_id: ACME, scope: 'customers:own', ...claims },
    };
    const protectedHeader = { alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header } as JWTHeaderParameters;
    return new SignJWT(all).setProtectedHeader(protectedHeader).sign(key.privateKey, { crit: { x: true } });
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    this.server?.close();
    if (this.server) await once(this.server, 'close');
    this.server = undefined;
  }

  /** Serves again on the same port as before. */
  async start(): Promise<void> {
    this.server = createServer((request, response) => {
      this.requests++;
      if (this.broken) return this.broken(request, response);
      response
        .setHeader('Content-Type', 'application/json')
        .end(JSON.stringify({ keys: this.keys.map(({ jwk }) => jwk) }));
    }).listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
  }
}
