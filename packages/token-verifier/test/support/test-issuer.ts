import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose';
import { TestFeed } from './test-feed.js';

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>> & { jwk: JWK };

export const RESOURCE_SERVER = { id: 'chat api', secret: 'a secret: with % and ü, 32 characters' };

/** An authorization server on a real port: its keys, its revocation feed and its tokens. */
export class TestIssuer {
  readonly feed = new TestFeed();
  readonly keys: KeyPair[] = [];
  jwksRequests = 0;
  /** Replaces the responses of the key set. */
  jwks: RequestListener | undefined;
  private readonly server: Server = createServer((request, response) => this.respond(request, response));

  static async start(): Promise<TestIssuer> {
    const issuer = new TestIssuer();
    await issuer.addKey();
    issuer.server.listen(0, '127.0.0.1');
    await once(issuer.server, 'listening');
    return issuer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  get options() {
    const revocations = { url: `${this.url}/oauth2/revocations`, ...RESOURCE_SERVER };
    return {
      issuer: this.url,
      audience: 'customer-api',
      revocations: { ...revocations, maxAgeSeconds: 60, onStale: 'reject' as 'reject' | 'accept' },
    };
  }

  /** Publishes one more key, which signs from now on. */
  async addKey(kid = `key-${this.keys.length + 1}`): Promise<void> {
    const pair = await generateKeyPair('ES256', { extractable: true });
    const jwk = { ...(await exportJWK(pair.publicKey)), kid, alg: 'ES256', use: 'sig' };
    this.keys.push({ ...pair, jwk });
  }

  /** @param now milliseconds since 1970 */
  claims(now: number, changes: object = {}): JWTPayload {
    const iat = Math.floor(now / 1000);
    const ids = { sub: 'customer-1', client_id: 'site', organization_id: 'acme', jti: 'token-1' };
    return { iss: this.url, aud: 'customer-api', ...ids, iat, exp: iat + 3_600, gen: 1, ...changes };
  }

  /** Signs the bare JWS. */
  sign(claims: JWTPayload): Promise<string> {
    const { privateKey, jwk } = this.keys.at(-1) as KeyPair;
    const header = { typ: 'at+jwt', alg: 'ES256', kid: `${jwk.kid}` };
    return new SignJWT(claims).setProtectedHeader(header).sign(privateKey);
  }

  async token(now: number, changes: object = {}): Promise<string> {
    return `eu:${await this.sign(this.claims(now, changes))}`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private respond(request: IncomingMessage, response: ServerResponse): void {
    if (request.url?.startsWith('/oauth2/revocations')) return void this.feed.respond(request, response);
    this.jwksRequests += 1;
    if (this.jwks) return void this.jwks(request, response);
    response
      .setHeader('Content-Type', 'application/json')
      .end(JSON.stringify({ keys: this.keys.map(({ jwk }) => jwk) }));
  }
}
