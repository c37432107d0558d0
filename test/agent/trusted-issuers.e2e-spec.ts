import { randomUUID } from 'node:crypto';
import { type CryptoKey, exportSPKI, importJWK, SignJWT } from 'jose';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import {
  expectError,
  expectInvalidRequest,
  expectInvalidToken,
  expectLimited,
  expectUnavailable,
} from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { issueAgentToken, purge } from '../support/operator-commands.js';
import { twinOf } from '../support/signature-twin.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME, ACME_SITE, PUBLIC_ORIGIN, PUBLIC_SITE, RIVAL, UNKNOWN_CUSTOMER } from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import { serviceOfTest, type UsedService, useService } from '../support/use-service.js';

const YEAR_SECONDS = 31_536_000;

const trusting = (...issuers: object[]) => ({ environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify(issuers) } });

const realNow = Date.now;

/** Moves `Date.now` of the whole process, because the key cache reads nothing else. */
function moveTime(seconds: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + seconds * 1000);
}

let idp: TestIssuer;
/** The issuer of the organization Rival, with other claim names. */
let other: TestIssuer;
const service = useService(async () => {
  idp = await TestIssuer.start();
  other = await TestIssuer.start('RS256');
  const otherwise = {
    ...{ issuer: 'https://login.rival.example/', audience: 'customer-api', algorithms: ['RS256'], typ: 'JWT' },
    ...{ organizations: [RIVAL], organization_claim: 'org', scope_claim: 'permissions' },
  };
  return trusting(idp.trust(), other.trust(otherwise));
});
afterAll(async () => {
  await idp?.stop();
  await other?.stop();
});

const token = (claims: object = {}, header: object = {}, key = idp.keys.at(-1)) =>
  idp.sign(service.clock.now(), claims, header, key);
const tokenOfOther = (claims: object = {}) => {
  const omitted = { organization_id: undefined, scope: undefined };
  const named = {
    iss: 'https://login.rival.example/',
    aud: 'customer-api',
    org: RIVAL,
    permissions: ['customers:own'],
  };
  return other.sign(service.clock.now(), { ...omitted, ...named, ...claims }, { typ: 'JWT' });
};

describe('an agent token of a trusted issuer', () => {
  it('creates customers of its organization, and reaches them', async () => {
    const created = await asAgent(await token());
    expect(created).toMatchObject({ status: 200, body: { organization_id: ACME, client_id: ACME_SITE } });
    const found = await asAgent(await token(), { entity_id: created.body.entity_id });
    expect(found).toMatchObject({ status: 200, body: { entity_id: created.body.entity_id } });
  });

  it('is read by the claim names that its issuer uses', async () => {
    const response = await asAgent(await tokenOfOther(), { client_id: PUBLIC_SITE });
    expect(response).toMatchObject({ status: 200, body: { organization_id: RIVAL } });
    const text = await asAgent(await tokenOfOther({ permissions: 'x customers:own' }), { client_id: PUBLIC_SITE });
    expect(text.status).toBe(200);
  });

  it.each(['sub', 'client_id'])(
    'is rejected with a lone surrogate in %s, which UTF-8 would store as U+FFFD',
    async (claim) => {
      expectInvalidToken(await asAgent(await token({ [claim]: 'x\ud800' })));
    },
  );

  it('may have several audiences, if the expected audience is one of them', async () => {
    expect((await asAgent(await token({ aud: ['https://x.example', TestIssuer.AUDIENCE] }))).status).toBe(200);
  });

  it('is valid only for the organizations that are listed for its issuer', async () => {
    for (const organization_id of [RIVAL, undefined, [ACME], ACME.toUpperCase()])
      expectInvalidToken(await asAgent(await token({ organization_id }), { client_id: PUBLIC_SITE }));
    expectInvalidToken(await asAgent(await tokenOfOther({ org: ACME })));
    expectInvalidRequest(await asAgent(await token(), { organization_id: RIVAL }), /^organization_id: /);
  });

  it.each([undefined, ['agents:read'], { 'customers:own': true }])(
    'is rejected without the scope customers:own: %j',
    async (scope) => {
      const response = await asAgent(await token({ scope }));
      expectError(response, { status: 403, error: 'insufficient_scope', hint: /customers:own/ });
    },
  );

  it('is never accepted as a customer token, with any audience of its issuer', async () => {
    const { entity_id } = (await service.post(TOKEN, cookieBody())).body;
    for (const jwt of [await token({ sub: entity_id, entity_id }), await tokenOfOther({ sub: entity_id })]) {
      expectInvalidToken(await service.send('GET', '/v2/customer/info', bearer(jwt)));
      const transfer = { bearer_type: 'customer', client_id: ACME_SITE };
      expectInvalidToken(await service.post('/v2/customer/identity_transfer', transfer, bearer(jwt)));
    }
    const transfer = { bearer_type: 'agent', client_id: ACME_SITE, customer_id: entity_id };
    const response = await service.post('/v2/customer/identity_transfer', transfer, bearer(await token()));
    expect(response.status).toBe(200);
  });
});

describe('a token that claims to be from a trusted issuer', () => {
  it.each<[string, object, object?]>([
    ['another audience', { aud: 'agent-api' }],
    ['the issuer with a slash', { iss: 'https://idp.example/' }],
    [
      'the other trusted issuer',
      { iss: 'https://login.rival.example/', aud: 'customer-api', org: RIVAL },
      { typ: 'JWT' },
    ],
    ['the service as its issuer', { iss: 'https://auth.example', aud: 'agent-api' }],
    ['no subject', { sub: undefined }],
    ['no expiry', { exp: undefined }],
    ['another type', {}, { typ: 'JWT' }],
    ['an unknown key id', {}, { kid: 'unknown' }],
    ['a critical extension', {}, { crit: ['x'], x: 1 }],
  ])('is rejected with %s', async (_, claims, header = {}) => {
    expectInvalidToken(await asAgent(await token(claims, header)));
  });

  it('is rejected with an algorithm that is not listed, even if the issuer publishes the key', async () => {
    const key = await idp.addKey('RS256');
    moveTime(61);
    expectInvalidToken(await asAgent(await token({}, {}, key)));
    idp.keys.pop();
  });

  it('is rejected without a signature, or with the public key as an HMAC secret', async () => {
    const good = await token();
    const [, payload = ''] = good.split('.');
    const none = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url');
    expectInvalidToken(await asAgent(`${none}.${payload}.`));
    const publicKey = (await importJWK(idp.keys[0]?.jwk as object, 'ES256')) as CryptoKey;
    const secret = new TextEncoder().encode(await exportSPKI(publicKey));
    const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
    const symmetric = new SignJWT(claims).setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: 'key-1' });
    expectInvalidToken(await asAgent(await symmetric.sign(secret)));
  });

  it('is rejected with a key or a key URL in its header, and the service does not fetch the URL', async () => {
    const attacker = await TestIssuer.start();
    const url = attacker.trust().jwks_uri;
    for (const header of [{ jwk: attacker.keys[0]?.jwk }, { jku: url }, { x5u: url }])
      expectInvalidToken(await asAgent(await token({}, header, attacker.keys[0])));
    expect(attacker.requests).toBe(0);
    await attacker.stop();
  });
});

describe('the client of a trusted issuer’s token', () => {
  const managing = () => idp.trust({ scopes: ['customers:manage'] });
  const erase = async (at: Pick<UsedService, 'clock' | 'post'>, client_id: string, headers: object = {}) => {
    const jwt = await idp.sign(at.clock.now(), { client_id, scope: 'customers:manage' });
    return at.post('/v2/customer/erase', { customer_id: UNKNOWN_CUSTOMER }, { ...bearer(jwt), ...headers });
  };

  it('is not the client of this service with the same id, whose suspension or deletion leaves the token valid', async () => {
    const own = await serviceOfTest(trusting(managing()));
    expect((await own.admin('PATCH', `/admin/clients/${ACME_SITE}`, { suspended: true })).status).toBe(200);
    expect((await own.admin('DELETE', `/admin/clients/${PUBLIC_SITE}`)).status).toBe(200);
    for (const id of [ACME_SITE, PUBLIC_SITE]) expect((await erase(own, id)).status).toBe(200);
  });

  it('has no origins, also not those of the client of this service with the same id', async () => {
    const own = await serviceOfTest(trusting(managing()));
    expectInvalidRequest(await erase(own, PUBLIC_SITE, { origin: PUBLIC_ORIGIN }), /^client_id: unknown/);
  });

  it('has a limit of token requests of its own', async () => {
    const own = await serviceOfTest({
      environment: { ...trusting(managing()).environment, RATE_LIMIT: 'tokens=1/3600' },
    });
    beginWindow(own);
    expect((await erase(own, ACME_SITE)).status).toBe(200);
    expectLimited(await erase(own, ACME_SITE), 3_600);
    expect((await erase(own, 'another')).status).toBe(200);
    expect((await own.post(TOKEN, cookieBody())).status).toBe(200);
  });
});

describe('the keys of a trusted issuer', () => {
  type Keys = TestIssuer['keys'];
  it.each<[string, (keys: Keys) => Keys]>([
    ['one key twice', ([first]) => [first, first] as Keys],
    [
      'two keys with one kid',
      ([first, second]) => [{ ...second, jwk: { ...second?.jwk, kid: 'key-1' } }, first] as Keys,
    ],
    ['several keys without a kid', (keys) => keys.map((key) => ({ ...key, jwk: { ...key.jwk, kid: undefined } }))],
  ])('are all tried if the set has %s', async (_what, publish) => {
    const issuer = await TestIssuer.start();
    onTestFinished(() => issuer.stop());
    const second = await issuer.addKey();
    const stranger = await TestIssuer.start();
    onTestFinished(() => stranger.stop());
    const [first] = issuer.keys as [Keys[0]];
    issuer.keys = publish(issuer.keys);
    const { kid } = (issuer.keys as [Keys[0]])[0].jwk as { kid?: string };
    const { clock, ...service } = await serviceOfTest(trusting(issuer.trust()));
    const statusOf = async (key: Keys[0]) => {
      const headers = bearer(await issuer.sign(clock.now(), {}, { kid }, key));
      return (await service.post(TOKEN, agentTokenBody(), headers)).status;
    };
    const published = issuer.keys.map(({ privateKey }) => privateKey);
    for (const key of [first, second, ...stranger.keys])
      expect(await statusOf(key as Keys[0])).toBe(published.includes((key as Keys[0]).privateKey) ? 200 : 401);
  });
});

describe('the lifetime of a trusted issuer’s token', () => {
  it('ends exactly at exp, without any tolerance', async () => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now());
    const now = service.clock.seconds();
    expect((await asAgent(await token({ exp: now + 1 }))).status).toBe(200);
    expectInvalidToken(await asAgent(await token({ exp: now })));
    expectInvalidToken(await asAgent(await token({ exp: now - 1 })));
  });

  it.each(['nbf', 'iat'])('may begin up to 30 s in the future: %s', async (claim) => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now());
    const now = service.clock.seconds();
    expect((await asAgent(await token({ [claim]: now + 30 }))).status).toBe(200);
    expectInvalidToken(await asAgent(await token({ [claim]: now + 31 })));
  });
});

describe('DELETE /v2/token', () => {
  it('ends a trusted issuer’s token, and no other token', async () => {
    const [one, two] = [await token({ jti: 'one' }), await token({ jti: 'two' })];
    const sameId = await tokenOfOther({ jti: 'one' });
    expect(await service.send('DELETE', '/v2/token', bearer(one))).toMatchObject({ status: 200, body: {} });
    expectInvalidToken(await asAgent(one));
    expectInvalidToken(await service.send('DELETE', '/v2/token', bearer(one)));
    expect((await asAgent(two)).status).toBe(200);
    expect((await asAgent(sameId, { client_id: PUBLIC_SITE })).status).toBe(200);
  });

  it('ends a trusted issuer’s token without a jti, or with a very long one', async () => {
    for (const jti of [undefined, 'x'.repeat(1_000)]) {
      const ended = await token({ jti });
      expect((await service.send('DELETE', '/v2/token', bearer(ended))).status).toBe(200);
      expectInvalidToken(await asAgent(ended));
    }
    expect((await asAgent(await token({ jti: undefined, sub: 'agent-8' }))).status).toBe(200);
  });

  it.each<[string, (signature: Buffer) => string]>([
    ['as the issuer wrote it', (signature) => signature.toString('base64url')],
    ['with the other signature of ECDSA', (signature) => twinOf(signature).toString('base64url')],
  ])('ends a trusted issuer’s token without a jti in each text of its signature: %s', async (_, textOf) => {
    const ended = await token({ jti: undefined, sub: randomUUID() });
    const end = ended.lastIndexOf('.') + 1;
    const signature = Buffer.from(ended.slice(end), 'base64url');
    expect((await service.send('DELETE', '/v2/token', bearer(ended))).status).toBe(200);
    const altered = ended.slice(0, end) + textOf(signature);
    expectInvalidToken(await asAgent(altered));
    expectInvalidToken(await asAgent(`eu:${altered}`));
  });

  it.each<[string, (signature: Buffer) => string]>([
    ['with padding', (signature) => `${signature.toString('base64url')}==`],
    ['in the alphabet of base64', (signature) => signature.toString('base64').replace(/=+$/, '')],
    ['in base64 with padding', (signature) => signature.toString('base64')],
    ['with a tab within', (signature) => signature.toString('base64url').replace(/^.{40}/, '$&\t')],
    ['with other unused bits', (signature) => withOtherBits(signature.toString('base64url'))],
    ['with the other signature and padding', (signature) => `${twinOf(signature).toString('base64url')}==`],
    ['with an escaped character', (signature) => signature.toString('base64url').replace(/^./, escaped)],
  ])('a trusted issuer’s token is rejected in another text of its signature: %s', async (_, textOf) => {
    let valid = await token();
    while (!/[-_][^.]*$/.test(valid)) valid = await token(); // else both alphabets have the same text
    const end = valid.lastIndexOf('.') + 1;
    const altered = valid.slice(0, end) + textOf(Buffer.from(valid.slice(end), 'base64url'));
    expectInvalidToken(await asAgent(altered));
    expectInvalidToken(await asAgent(`eu:${altered}`));
    expect((await asAgent(valid)).status).toBe(200);
  });

  it('ends no other token of a trusted issuer than the one with the same jti', async () => {
    for (const jti of ['', 7, null, {}]) {
      const [ended, valid] = [await token({ jti, sub: 'agent-1' }), await token({ jti, sub: 'agent-2' })];
      expect((await service.send('DELETE', '/v2/token', bearer(ended))).status).toBe(200);
      expectInvalidToken(await asAgent(ended));
      expect((await asAgent(valid)).status, `jti: ${JSON.stringify(jti)}`).toBe(200);
    }
  });

  it('ends a trusted issuer’s token for good: no cookie of the authorization page brings it back', async () => {
    const ended = await token({ jti: 'for-good' });
    expect((await service.send('DELETE', '/v2/token', bearer(ended))).status).toBe(200);
    const browser = new AgentBrowser(service);
    browser.cookies.set('__Host-agent_session', encodeURIComponent(`${idp.issuer} for-good`));
    expect((await browser.signIn()).status).toBe(200);
    expectInvalidToken(await asAgent(ended));
  });

  it('ends a trusted issuer’s token for the rest of its lifetime', async () => {
    const long = await token({ exp: service.clock.seconds() + YEAR_SECONDS, sub: 'agent-9' });
    expect((await service.send('DELETE', '/v2/token', bearer(long))).status).toBe(200);
    service.passDays(364);
    await purge(service);
    expectInvalidToken(await asAgent(long));
  });
});

it('the keys of a trusted issuer cause 503 for its tokens until they can be fetched, while other tokens stay valid', async () => {
  const stopped = await TestIssuer.start();
  onTestFinished(() => stopped.stop());
  const own = await serviceOfTest(trusting(stopped.trust()));
  const send = async (jwt: string) => own.post(TOKEN, agentTokenBody(), bearer(jwt));
  const signed = () => stopped.sign(own.clock.now());
  await stopped.stop();
  expectUnavailable(await send(await signed()));
  expect((await send(await issueAgentToken(own))).status).toBe(200);
  await stopped.start();
  moveTime(2);
  expect((await send(await signed())).status).toBe(200);
});

const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** The last character of 64 bytes in base64url has 4 bits that decoding ignores. */
function withOtherBits(signature: string): string {
  const index = BASE64URL.indexOf(signature.at(-1) as string);
  return `${signature.slice(0, -1)}${BASE64URL[index + 1]}`;
}

const escaped = (character: string) => `%${character.charCodeAt(0).toString(16)}`;

function asAgent(jwt: string, body: object = {}): Promise<TestResponse> {
  return service.post(TOKEN, agentTokenBody(body), bearer(jwt));
}

// the last test, because the service that was started last in a process verifies all bearer tokens
it('an agent token of a trusted issuer without iat is valid again when the suspension of its organization is taken back', async () => {
  const own = await serviceOfTest(trusting(idp.trust()));
  const withoutIat = await token({ iat: undefined });
  const asOwn = async () => (await own.post(TOKEN, agentTokenBody(), bearer(withoutIat))).status;
  const set = (suspended: boolean) => own.admin('PATCH', `/admin/organizations/${ACME}`, { suspended });
  expect(await asOwn()).toBe(200);
  expect((await set(true)).status).toBe(200);
  expect(await asOwn()).toBe(401);
  expect((await set(false)).status).toBe(200);
  own.clock.advance({ seconds: 7 });
  expect(await asOwn()).toBe(200);
});
