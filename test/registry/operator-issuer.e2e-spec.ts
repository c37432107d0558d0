import { SignJWT } from 'jose';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { expectError, expectInvalidToken } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { TestIssuer } from '../support/test-issuer.js';
import { ACME } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const AUDIENCE = 'https://auth.example/admin';
const SECRET = Buffer.from('a symmetric key with at least 32 bytes');

let issuer: TestIssuer;
const service = useService(async () => {
  issuer = await TestIssuer.start();
  const { organizations: _, ...trusted } = issuer.trust({ audience: AUDIENCE, role_claim: 'roles' });
  return { environment: { ADMIN_ISSUER: JSON.stringify(trusted), TRUST_PROXY: '1' } };
});
afterEach(() => {
  issuer.broken = undefined;
});
afterAll(() => issuer?.stop());

const tokenOf = (claims: object = {}, header: object = {}) =>
  issuer.sign(service.clock.now(), { sub: 'person-7', aud: AUDIENCE, roles: 'all', ...claims }, header);
const seconds = () => Math.floor(service.clock.now() / 1000);
let networks = 0;
const list = (token: string, path = '/admin/clients') => {
  const headers = { ...bearer(token), 'x-forwarded-for': `198.51.100.${++networks}` };
  return manage(service, 'GET', path, headers);
};

describe('protocol §9.1: a token of ADMIN_ISSUER', () => {
  it('is an admin token, and the audit names the person and the issuer', async () => {
    const entry = { client_id: 'of-a-person', name: 'X', client_type: 'server', organization_id: ACME };
    const token = await tokenOf();
    expect((await manage(service, 'POST', '/admin/clients', bearer(token), entry)).status).toBe(201);
    const actor = { kind: 'operator', id: 'person-7', issuer: issuer.issuer };
    expect(service.audit.at(-1)).toMatchObject({ event: 'registry.changed', actor });
    expect(JSON.stringify(service.audit)).not.toContain(token);
  });

  it('gets 503 while the keys cannot be fetched, and the tokens of ADMIN_TOKENS stay valid', async () => {
    expect((await list(await tokenOf())).status).toBe(200);
    issuer.broken = (_, response) => void response.writeHead(500).end();
    expect((await list(await tokenOf())).status).toBe(200);
    service.clock.advance({ seconds: 601 });
    expect((await list(await tokenOf())).status).toBe(503);
    expect((await service.admin('GET', '/admin/clients')).status).toBe(200);
    expectInvalidToken(await list('no-token-of-the-issuer-0123456789abcdef'));
  });

  it.each([
    ['a role', 'support', [403, 200]],
    ['a list of roles', ['support', 'read'], [200, 200]],
    ['a list with an unknown role', ['admin', 'read', 7], [200, 403]],
    ['an unknown role', 'admin', [403, 403]],
    ['a role in upper case', 'ALL', [403, 403]],
    ['roles in one text', 'read support', [403, 403]],
    ['no text', { all: true }, [403, 403]],
    ['no role', undefined, [403, 403]],
  ])('may use the routes of its roles: %s', async (_, roles, statuses) => {
    const token = await tokenOf({ roles });
    const responses = [await list(token), await list(token, '/oauth2/revocations')];
    expect(responses.map(({ status }) => status)).toEqual(statuses);
  });

  it('without a known role gets 403 with the role that the route needs', async () => {
    const response = await list(await tokenOf({ roles: 'admin' }));
    expectError(response, { status: 403, error: 'insufficient_scope', hint: 'role: read is required' });
    expect(service.audit.at(-1)).toMatchObject({ actor: { id: 'person-7' }, reason: 'lacks the role read' });
  });

  it.each<[string, () => Promise<string>, RegExp]>([
    ['of another audience', () => tokenOf({ aud: TestIssuer.AUDIENCE }), /CLAIM_VALIDATION/],
    ['of two audiences', () => tokenOf({ aud: [AUDIENCE, 'other'] }), /more than one audience/],
    ['without an audience', () => tokenOf({ aud: undefined }), /CLAIM_VALIDATION/],
    ['of another issuer', () => tokenOf({ iss: 'https://other.example' }), /^not an admin token$/],
    ['of another typ', () => tokenOf({}, { typ: 'JWT' }), /CLAIM_VALIDATION/],
    ['that has expired', () => tokenOf({ iat: seconds() - 3_600, exp: seconds() - 1 }), /EXPIRED/],
    ['that does not expire', () => tokenOf({ exp: undefined }), /CLAIM_VALIDATION/],
    ['without iat', () => tokenOf({ iat: undefined }), /CLAIM_VALIDATION/],
    ['that lives longer than a day', () => tokenOf({ exp: seconds() + 86_401 }), /lifetime/],
    ['from the future', () => tokenOf({ iat: seconds() + 60 }), /CLAIM_VALIDATION/],
    ['without sub', () => tokenOf({ sub: undefined }), /CLAIM_VALIDATION/],
    ['with an empty sub', () => tokenOf({ sub: '' }), /sub/],
    ['with a long sub', () => tokenOf({ sub: 'x'.repeat(256) }), /sub/],
    ['of an unknown key', () => tokenOf({}, { kid: 'unknown' }), /NO_MATCHING_KEY/],
    ['with a wrong signature', async () => `${(await tokenOf()).slice(0, -20)}${'A'.repeat(20)}`, /SIGNATURE/],
    ['with the algorithm none', async () => unsigned(await tokenOf()), /ALG_NOT_ALLOWED|NOT_SUPPORTED|INVALID/],
    ['with HMAC', () => signedByHmac(), /ALG_NOT_ALLOWED/],
  ])('%s gets 401, and the audit says why', async (_, token, reason) => {
    expectInvalidToken(await list(await token()));
    expect(service.audit.at(-1)).toMatchObject({ actor: { kind: 'operator' }, reason: expect.stringMatching(reason) });
    expect(service.audit.at(-1)?.actor).not.toHaveProperty('id');
  });

  it('is no token of an agent or customer', async () => {
    const headers = bearer(await tokenOf());
    expect((await service.send('GET', '/v2/customer/info', headers)).status).toBe(401);
    expect((await service.send('DELETE', '/v2/token', headers)).status).toBe(401);
  });
});

function unsigned(token: string): string {
  const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'at+jwt' })).toString('base64url');
  return `${header}.${token.split('.')[1]}.`;
}

function signedByHmac(): Promise<string> {
  const claims = { iss: issuer.issuer, sub: 'person-7', aud: AUDIENCE, roles: 'all' };
  return new SignJWT({ ...claims, iat: seconds(), exp: seconds() + 60 })
    .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt', kid: issuer.keys[0]?.kid ?? '' })
    .sign(SECRET);
}
