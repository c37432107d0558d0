import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportSPKI, generateKeyPair, importJWK, SignJWT } from 'jose';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Revocation } from '../../src/access-token/revocation.entity.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { TestIssuer, UNUSABLE_RESPONSES } from '../support/test-issuer.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL, RIVAL_AGENT, RIVAL_SITE } from '../support/test-registry.js';
import { startTestService, type TestResponse, type TestService } from '../support/test-service.js';

const NOBODY = '01890000-0000-7000-8000-000000000000';
const YEAR = 31_536_000;

async function serviceTrusting(...issuers: object[]): Promise<TestService> {
  return startTestService({ environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify(issuers) } });
}

const realNow = Date.now;

/** Moves the time of the whole process so far from the real one; the cache of keys knows no other. */
function moveTime(seconds: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + seconds * 1000);
}

let service: TestService;
let idp: TestIssuer;
/** Speaks for Rival, with other names for the same things. */
let other: TestIssuer;
beforeAll(async () => {
  idp = await TestIssuer.start();
  other = await TestIssuer.start('RS256');
  const otherwise = {
    ...{ issuer: 'https://login.rival.example/', audience: 'customer-api', algorithms: ['RS256'], typ: 'JWT' },
    ...{ organizations: [RIVAL], organization_claim: 'org', scope_claim: 'permissions' },
  };
  service = await serviceTrusting(idp.trust(), other.trust(otherwise));
});
afterAll(async () => {
  await service?.stop();
  await idp?.goAway();
  await other?.goAway();
});
afterEach(() => vi.restoreAllMocks());

const token = (claims: object = {}, header: object = {}, key = idp.keys.at(-1)) =>
  idp.sign(service.clock.now(), claims, header, key);
const tokenOfOther = (claims: object = {}) => {
  const named = {
    iss: 'https://login.rival.example/',
    aud: 'customer-api',
    organization_id: undefined,
    scope: undefined,
  };
  return other.sign(
    service.clock.now(),
    { ...named, org: RIVAL, permissions: ['customers:own'], ...claims },
    { typ: 'JWT' },
  );
};

describe('an agent token of a trusted issuer', () => {
  it('makes customers of its organization, and reaches them', async () => {
    const made = await asAgent(await token());
    expect(made).toMatchObject({ status: 200, body: { organization_id: ACME, client_id: ACME_SITE } });
    const again = await asAgent(await token(), { entity_id: made.body.entity_id });
    expect(again).toMatchObject({ status: 200, body: { entity_id: made.body.entity_id } });
  });

  it('is read by the names that its issuer uses', async () => {
    const answer = await asAgent(await tokenOfOther(), { client_id: PUBLIC_SITE });
    expect(answer).toMatchObject({ status: 200, body: { organization_id: RIVAL } });
    const text = await asAgent(await tokenOfOther({ permissions: 'x customers:own' }), { client_id: PUBLIC_SITE });
    expect(text.status).toBe(200);
  });

  it('may be for several audiences, of which ours is one', async () => {
    expect((await asAgent(await token({ aud: ['https://x.example', TestIssuer.AUDIENCE] }))).status).toBe(200);
  });

  it('speaks for the organizations listed for its issuer, and no others', async () => {
    for (const organization_id of [RIVAL, NOBODY, '', undefined, [ACME], { id: ACME }, ACME.toUpperCase(), `${ACME} `])
      expectInvalidToken(await asAgent(await token({ organization_id }), { client_id: PUBLIC_SITE }));
    expectInvalidToken(await asAgent(await tokenOfOther({ org: ACME })));
    expectInvalidRequest(await asAgent(await token(), { organization_id: RIVAL }), /^organization_id: /);
  });

  it('does not reach the customers of other organizations', async () => {
    const ofRival = await issueAgentToken(service, { email: RIVAL_AGENT.email, clientId: RIVAL_SITE });
    const made = await service.post(TOKEN, agentTokenBody({ client_id: RIVAL_SITE }), bearer(ofRival));
    expectInvalidRequest(await asAgent(await token(), { entity_id: made.body.entity_id }), 'entity_id: unknown');
  });

  it.each([undefined, '', 'agents:read', [], ['agents:read'], { 'customers:own': true }, 7])(
    'needs the scope: not %j',
    async (scope) => {
      const answer = await asAgent(await token({ scope }));
      expectError(answer, { status: 403, error: 'insufficient_scope', hint: /customers:own/ });
    },
  );

  it('never acts as a customer, whatever audience the issuer is trusted for', async () => {
    const { entity_id } = (await service.post(TOKEN, cookieBody())).body;
    for (const foreign of [await token({ sub: entity_id, entity_id }), await tokenOfOther({ sub: entity_id })]) {
      expectInvalidToken(await service.send('GET', '/v2/customer/info', bearer(foreign)));
      const transfer = { bearer_type: 'customer', client_id: ACME_SITE };
      expectInvalidToken(await service.post('/v2/customer/identity_transfer', transfer, bearer(foreign)));
    }
    const transfer = { bearer_type: 'agent', client_id: ACME_SITE, customer_id: entity_id };
    const answer = await service.post('/v2/customer/identity_transfer', transfer, bearer(await token()));
    expect(answer.status).toBe(200);
  });
});

describe('a token that claims to be of a trusted issuer', () => {
  it.each<[string, object, object?]>([
    ['another audience', { aud: 'agent-api' }],
    ['no audience', { aud: undefined }],
    ['another issuer', { iss: 'https://evil.example' }],
    ['the issuer with a slash', { iss: 'https://idp.example/' }],
    [
      'the other trusted issuer',
      { iss: 'https://login.rival.example/', aud: 'customer-api', org: RIVAL },
      { typ: 'JWT' },
    ],
    ['us as its issuer', { iss: 'https://auth.example', aud: 'agent-api' }],
    ['no subject', { sub: undefined }],
    ['a subject that is no text', { sub: 7 }],
    ['no expiry', { exp: undefined }],
    ['an expiry that is no number', { exp: '9999999999' }],
    ['another type', {}, { typ: 'JWT' }],
    ['no type', {}, { typ: undefined }],
    ['a type of an id token', {}, { typ: 'id+jwt' }],
    ['a key that nobody has', {}, { kid: 'nobody' }],
    ['a critical extension', {}, { crit: ['x'], x: 1 }],
  ])('is refused with %s', async (_, claims, header = {}) => {
    expectInvalidToken(await asAgent(await token(claims, header)));
  });

  it('is refused with an algorithm that is not listed, though the issuer publishes the key', async () => {
    const key = await idp.addKey('RS256');
    moveTime(61);
    expectInvalidToken(await asAgent(await token({}, {}, key)));
    idp.keys.pop();
  });

  it('is refused when it is not signed, or with the public key as a secret', async () => {
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

  it('is refused damaged, truncated, or under our region', async () => {
    const good = await token();
    for (const damaged of [good.slice(0, -4), `${good}x`, good.replace('.', '%2E'), `dev:${good}`, good.toLowerCase()])
      expectInvalidToken(await asAgent(damaged));
  });

  it('is refused with a key of its own in the header, and nobody fetches it', async () => {
    let visits = 0;
    const server = createServer((_, response) => void response.end(String(visits++))).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const { privateKey } = await generateKeyPair('ES256');
    const key = { kid: 'key-1', alg: 'ES256', privateKey, jwk: {} };
    for (const header of [{ jwk: { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' } }, { jku: url }, { x5u: url }])
      expectInvalidToken(await asAgent(await token({}, header, key)));
    server.close();
    expect(visits).toBe(0);
  });
});

describe('the time of a foreign token', () => {
  it('ends with its last second, without any tolerance', async () => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now());
    const now = service.clock.seconds();
    expect((await asAgent(await token({ exp: now + 1 }))).status).toBe(200);
    expectInvalidToken(await asAgent(await token({ exp: now })));
    expectInvalidToken(await asAgent(await token({ exp: now - 1 })));
  });

  it.each(['nbf', 'iat'])('may begin up to 30 s in our future: %s', async (claim) => {
    vi.spyOn(service.clock, 'now').mockReturnValue(Date.now());
    const now = service.clock.seconds();
    expect((await asAgent(await token({ [claim]: now + 30 }))).status).toBe(200);
    expectInvalidToken(await asAgent(await token({ [claim]: now + 31 })));
  });
});

describe('DELETE /v2/token', () => {
  it('ends a foreign token, and no other', async () => {
    const [one, two] = [await token({ jti: 'one' }), await token({ jti: 'two' })];
    const sameId = await tokenOfOther({ jti: 'one' });
    expect(await service.send('DELETE', '/v2/token', bearer(one))).toMatchObject({ status: 200, body: {} });
    expectInvalidToken(await asAgent(one));
    expectInvalidToken(await service.send('DELETE', '/v2/token', bearer(one)));
    expect((await asAgent(two)).status).toBe(200);
    expect((await asAgent(sameId, { client_id: PUBLIC_SITE })).status).toBe(200);
  });

  it('ends one without a jti too, or with a very long one', async () => {
    for (const jti of [undefined, 'x'.repeat(1000)]) {
      const foreign = await token({ jti });
      expect((await service.send('DELETE', '/v2/token', bearer(foreign))).status).toBe(200);
      expectInvalidToken(await asAgent(foreign));
    }
    expect((await asAgent(await token({ jti: undefined, sub: 'agent-8' }))).status).toBe(200);
  });

  it('ends one for as long as it would have lived', async () => {
    const exp = service.clock.seconds() + YEAR;
    const before = await revocations();
    await service.send('DELETE', '/v2/token', bearer(await token({ exp, sub: 'agent-9' })));
    const [entry] = (await revocations()).filter(({ value }) => !before.some((old) => old.value === value));
    expect((entry?.expiresAt.getTime() ?? 0) / 1000).toBeGreaterThanOrEqual(exp);
  });
});

describe('the keys of a trusted issuer', () => {
  let mover: TestIssuer;
  let trusting: TestService;
  beforeEach(async () => {
    mover = await TestIssuer.start();
    trusting = await serviceTrusting(mover.trust());
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await trusting.stop();
    await mover.goAway();
  });
  const send = async (foreign: string) => trusting.post(TOKEN, agentTokenBody(), bearer(foreign));
  const signed = (header: object = {}, key = mover.keys.at(-1)) => mover.sign(trusting.clock.now(), {}, header, key);

  it('are asked for once, by however many first requests', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, async () => send(await signed())));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    await send(await signed());
    expect(mover.requests).toBe(1);
  });

  it('are asked for again at a key nobody knows yet, but at most once a minute', async () => {
    await send(await signed());
    for (let n = 0; n < 5; n++) expectInvalidToken(await send(await signed({ kid: `nobody-${n}` })));
    expect(mover.requests).toBe(1);
    moveTime(61);
    for (let n = 0; n < 5; n++) expectInvalidToken(await send(await signed({ kid: `nobody-${n}` })));
    expect(mover.requests).toBe(2);
    expect((await send(await signed())).status).toBe(200);
  });

  it('may be rotated: a new one is found, a withdrawn one no longer believed', async () => {
    const before = await signed();
    expect((await send(before)).status).toBe(200);
    await mover.addKey();
    moveTime(61);
    expect((await send(await signed())).status).toBe(200);
    expect((await send(before)).status).toBe(200);
    mover.keys.shift();
    moveTime(601);
    expect((await send(await signed())).status).toBe(200);
    expectInvalidToken(await send(await mover.sign(Date.now(), {}, { kid: 'key-1' })));
  });

  it('let tokens in while the issuer is away, as long as they are fresh', async () => {
    await send(await signed());
    await mover.goAway();
    expect((await send(await signed())).status).toBe(200);
    moveTime(601);
    expectUnavailable(await send(await signed()));
    await mover.comeBack();
    moveTime(603);
    expect((await send(await signed())).status).toBe(200);
  });

  it('that cannot be had at first make 503 of these tokens, while ours go on; later they come in', async () => {
    await mover.goAway();
    expectUnavailable(await send(await signed()));
    const ours = bearer(await issueAgentToken(trusting));
    expect((await trusting.post(TOKEN, agentTokenBody(), ours)).status).toBe(200);
    expect((await trusting.post(TOKEN, cookieBody())).status).toBe(200);
    await mover.comeBack();
    moveTime(2);
    expect((await send(await signed())).status).toBe(200);
  });

  it.each(UNUSABLE_RESPONSES)('make 503 of these tokens when the issuer answers %s', async (_, broken) => {
    mover.broken = broken;
    const start = performance.now();
    expectUnavailable(await send(await signed()));
    expect(performance.now() - start).toBeLessThan(5_000);
    const ours = bearer(await issueAgentToken(trusting));
    expect((await trusting.post(TOKEN, agentTokenBody(), ours)).status).toBe(200);
    mover.broken = undefined;
    moveTime(10);
    expect((await send(await signed())).status).toBe(200);
  });
});

describe('a trusted issuer that fails', () => {
  let failing: TestIssuer;
  let trusting: TestService;
  let now: number;
  beforeEach(async () => {
    failing = await TestIssuer.start();
    trusting = await serviceTrusting(failing.trust());
    now = Date.now();
    vi.spyOn(trusting.clock, 'now').mockImplementation(() => now);
  });
  afterEach(async () => {
    vi.restoreAllMocks();
    await trusting.stop();
    await failing.goAway();
  });

  const FAIL: typeof failing.broken = (_, response) => void response.writeHead(500).end();
  const send = async (foreign: string) => trusting.post(TOKEN, agentTokenBody(), bearer(foreign));
  /** Signed with a key that the issuer does not have, under a key id of its own. */
  const forged = async () => {
    const { privateKey } = await generateKeyPair('ES256');
    return failing.sign(now, {}, {}, { kid: crypto.randomUUID(), alg: 'ES256', privateKey, jwk: {} });
  };
  const sendForged = (count: number) => Promise.all(Array.from({ length: count }, async () => send(await forged())));

  it('is asked once a second, however many forged tokens come one after the other or at once', async () => {
    failing.broken = FAIL;
    for (let n = 0; n < 10; n++) expectUnavailable(await send(await forged()));
    for (const answer of await sendForged(20)) expectUnavailable(answer);
    expect(failing.requests).toBe(1);
    now += 1_001;
    for (const answer of await sendForged(20)) expectUnavailable(answer);
    for (let n = 0; n < 10; n++) expectUnavailable(await send(await forged()));
    expect(failing.requests).toBe(2);
    expect((await trusting.post(TOKEN, cookieBody())).status).toBe(200);
  });

  it('is asked once by forged tokens that come while it does not respond', async () => {
    failing.broken = () => undefined;
    for (const answer of await sendForged(20)) expectUnavailable(answer);
    expect(failing.requests).toBe(1);
  });

  it('is asked once a second when its keys are known, and tokens with a known key stay valid', async () => {
    expect((await send(await failing.sign(now))).status).toBe(200);
    failing.broken = FAIL;
    now += 61_000;
    for (let n = 0; n < 10; n++) expectUnavailable(await send(await forged()));
    for (const answer of await sendForged(20)) expectUnavailable(answer);
    expect(failing.requests).toBe(2);
    expect((await send(await failing.sign(now))).status).toBe(200);
    failing.broken = undefined;
    now += 1_001;
    for (const answer of await sendForged(20)) expectInvalidToken(answer);
    expect(failing.requests).toBe(3);
  });
});

function asAgent(foreign: string, body: object = {}): Promise<TestResponse> {
  return service.post(TOKEN, agentTokenBody(body), bearer(foreign));
}

function expectInvalidToken(answer: TestResponse): void {
  expectError(answer, { status: 401, error: 'invalid_token', description: 'Invalid access token', hint: undefined });
}

function expectUnavailable(answer: TestResponse): void {
  expectError(answer, { status: 503, error: 'temporarily_unavailable', hint: undefined });
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
}

function revocations(): Promise<Revocation[]> {
  return service.application.get(DataSource).getRepository(Revocation).find();
}
