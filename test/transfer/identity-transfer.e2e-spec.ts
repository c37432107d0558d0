import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import { signAgentToken } from '../../packages/conformance-kit/src/agent-token.js';
import { claimsOf, pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidGrant, expectInvalidRequest, expectInvalidToken } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import {
  ACME,
  ACME_AGENT,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_ORIGIN,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
  RIVAL,
  RIVAL_ORIGIN,
  RIVAL_SITE,
  UNKNOWN_CUSTOMER,
} from '../support/test-registry.js';
import { type TestResponse } from '../support/test-service.js';
import {
  everythingIn,
  expectSameResponse,
  newCustomer,
  redeem,
  sessionsIn,
  TRANSFER,
  transferBody,
} from '../support/transfers.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const { verifier, asked } = pkce();
const CHALLENGE = asked.code_challenge;

const service = useService();
let customer: { entity_id: string; access_token: string };
let agentToken: string;
beforeEach(async () => {
  customer = await newCustomer(service);
  agentToken = await issueAgentToken(service);
});

const asCustomer = (body: object = {}, headers: Record<string, string> = {}) =>
  service.post(TRANSFER, transferBody(body), { ...bearer(customer.access_token), ...headers });
const asAgent = (body: object = {}, headers: Record<string, string> = {}) =>
  service.post(TRANSFER, transferBody({ bearer_type: 'agent', customer_id: customer.entity_id, ...body }), {
    ...bearer(agentToken),
    ...headers,
  });
const KINDS = { customer: asCustomer, agent: asAgent };

/** The stored transfer tokens that are not redeemed. */
const unredeemed = () => sessionsIn(service).findBy({ kind: 'code' });

/** Checks that a request is refused with a hint about the parameter, and that nothing is stored. */
async function expectErrorWithoutCode(send: () => Promise<TestResponse>, hint: RegExp): Promise<void> {
  const before = await unredeemed();
  expectInvalidRequest(await send(), hint);
  expect(await unredeemed()).toEqual(before);
}

describe.each(Object.entries(KINDS))('protocol §4.4: a transfer token for a %s', (kind, requestTransfer) => {
  it('comes in a response with exactly the fields of protocol §4.4', async () => {
    const { status, body, cookies } = await requestTransfer();
    expect(status).toBe(200);
    expect(body).toEqual({ identity_transfer_token: expect.stringMatching(/^dev:[\w-]{43}$/), expires_in: 3_600 });
    expect(cookies).toEqual([]);
  });

  it('is for the customer, its organization and the named client, and is stored only as its SHA-256', async () => {
    const before = new Set((await unredeemed()).map(({ id }) => id));
    const { body } = await requestTransfer({ client_id: PUBLIC_SITE, code_challenge: CHALLENGE });
    const token: string = body.identity_transfer_token;
    const [row, ...others] = (await unredeemed()).filter(({ id }) => !before.has(id));
    expect(others).toEqual([]);
    expect(row).toMatchObject({
      codeHash: createHash('sha256').update(token).digest('hex'),
      clientId: PUBLIC_SITE,
      customerId: customer.entity_id,
      codeChallenge: CHALLENGE,
      redeemedAt: null,
      redeemedNetwork: null,
    });
    const all = await everythingIn(service);
    expect(all).toContain(row?.codeHash);
    for (const secret of [token, token.slice('dev:'.length), customer.access_token, agentToken])
      expect(all).not.toContain(secret);
    const given = (await redeem(service, token, { client_id: PUBLIC_SITE, code_verifier: verifier })).body;
    const granted = { sub: customer.entity_id, organization_id: ACME, client_id: PUBLIC_SITE };
    expect(claimsOf(given.access_token)).toMatchObject(granted);
  });

  it.each<[object, RegExp]>([
    [{ bearer_type: 'Customer' }, /^bearer_type: must be agent or customer$/],
    [{ client_id: 'nobody' }, /^client_id: /],
    [{ client_id: 'acme-site ' }, /^client_id: /],
    [{ customer_id: 'x' }, /^customer_id: /],
    [{ customer_id: `${UNKNOWN_CUSTOMER} ` }, /^customer_id: /],
    [{ code_challenge: `${CHALLENGE}=` }, /^code_challenge: /],
    [{ code_challenge: CHALLENGE, code_challenge_method: 'plain' }, /^code_challenge_method: must be S256$/],
    [{ code_challenge_method: 'S256' }, /^code_challenge: required/],
  ])('is refused for %j', async (body, hint) => {
    await expectErrorWithoutCode(() => requestTransfer(body), hint);
  });

  it('can be for any client that the organization may use, not only for the client of the bearer token', async () => {
    for (const client_id of [ACME_SITE, ACME_NATIVE, ACME_BACKEND, PUBLIC_SITE])
      expect((await requestTransfer({ client_id })).status).toBe(200);
    await expectErrorWithoutCode(
      () => requestTransfer({ client_id: RIVAL_SITE }),
      /^client_id: not usable in this organization$/,
    );
  });

  it('accepts an Origin only if it belongs to the client of the request', async () => {
    for (const origin of ['https://evil.example', 'null', PUBLIC_ORIGIN, RIVAL_ORIGIN, `${ACME_ORIGIN}:8443`, '']) {
      await expectErrorWithoutCode(() => requestTransfer({}, { origin }), /^Origin: /);
    }
    await expectErrorWithoutCode(
      () => requestTransfer({ client_id: PUBLIC_SITE }, { origin: ACME_ORIGIN }),
      /^Origin: /,
    );
    expect((await requestTransfer({ client_id: PUBLIC_SITE }, { origin: PUBLIC_ORIGIN })).status).toBe(200);
    const { status, headers } = await requestTransfer({}, { origin: ACME_ORIGIN });
    expect(status).toBe(200);
    expect(headers.get('access-control-allow-origin')).toBe(ACME_ORIGIN);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
  });

  it('is refused with 401 for a bearer_type that is not the kind of the token', async () => {
    const before = await unredeemed();
    const bearer_type = kind === 'agent' ? 'customer' : 'agent';
    for (const body of [{}, { customer_id: customer.entity_id }, { client_id: 'nobody' }])
      expectInvalidToken(await requestTransfer({ ...body, bearer_type }));
    expect(await unredeemed()).toEqual(before);
  });
});

describe('protocol §4.4: authorized with an agent token', () => {
  it('requires the customer_id', () =>
    expectErrorWithoutCode(() => asAgent({ customer_id: undefined }), /^customer_id: required$/));

  it('gives the same response for a customer of another organization and for an unknown one', async () => {
    const ofRival = await service.post(TOKEN, cookieBody({ client_id: RIVAL_SITE, organization_id: RIVAL }));
    const before = await unredeemed();
    const name = (customer_id: string) => (headers: object) => asAgent({ customer_id }, headers as never);
    await expectSameResponse(name(UNKNOWN_CUSTOMER), name(ofRival.body.entity_id));
    expectInvalidRequest(await asAgent({ customer_id: ofRival.body.entity_id }), 'customer_id: unknown');
    expect(await unredeemed()).toEqual(before);
  });

  it.each(['agents:read', 'customers:own:all', 'CUSTOMERS:OWN'])(
    'responds with 403 without the scope customers:own: %j',
    async (scope) => {
      const before = await unredeemed();
      const response = await asAgent(
        {},
        bearer(await signAgentToken(service, { email: ACME_AGENT.email, clientId: ACME_SITE, scope })),
      );
      expectError(response, { status: 403, error: 'insufficient_scope', hint: /^scope: customers:own / });
      expect(response.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="customers:own"');
      expect(await unredeemed()).toEqual(before);
    },
  );
});

it('protocol §4.4: a request with a customer token accepts only the customer itself as customer_id', async () => {
  expect((await asCustomer({ customer_id: customer.entity_id })).status).toBe(200);
  const other = await newCustomer(service);
  const ofRival = await service.post(TOKEN, cookieBody({ client_id: RIVAL_SITE, organization_id: RIVAL }));
  for (const customer_id of [other.entity_id, ofRival.body.entity_id, UNKNOWN_CUSTOMER]) {
    await expectErrorWithoutCode(
      () => asCustomer({ customer_id }),
      /^customer_id: must be the customer of the bearer token$/,
    );
  }
});

const BODIES = ['', 'no JSON', '[]', '{}', '{"client_id":1,"client_id":2}', JSON.stringify(transferBody())];

it.each(BODIES)('protocol §4.4: a request without a bearer token gets 401, whatever its body: %j', async (body) => {
  for (const authorization of ['', 'Bearer', 'Bearer dev:x', 'Basic eDp5'])
    expectInvalidToken(await service.post(TRANSFER, body, { authorization }));
});

it('TRANSFER_TOKEN_TTL is the lifetime of transfer tokens and the one in the response', async () => {
  const other = await serviceOfTest({ environment: { TRANSFER_TOKEN_TTL: '90' } });
  const send = async () => other.post(TRANSFER, transferBody(), bearer((await newCustomer(other)).access_token));
  const [first, second] = [await send(), await send()];
  expect(first.body.expires_in).toBe(90);
  other.clock.advance({ seconds: 85 });
  expect((await redeem(other, first.body.identity_transfer_token)).status).toBe(200);
  other.clock.advance({ seconds: 6 });
  expectInvalidGrant(await redeem(other, second.body.identity_transfer_token));
});
