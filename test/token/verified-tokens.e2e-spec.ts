import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import { generateKey, type PrivateKeySet } from '../../src/access-token/key-set.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { manage } from '../support/management-api.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { infoStatus, newCustomer, TRANSFER, transferBody } from '../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-the-verified-tokens-test';
const TTL_SECONDS = 28_800;

type Customer = Awaited<ReturnType<typeof newCustomer>>;

let database: TestDatabase;
let service: TestService;
/** Another process with the same database, in which the tokens end. */
let other: TestService;
let agentToken: string;
beforeAll(async () => {
  database = await createTestDatabase();
  const options = { database, environment: { ADMIN_TOKEN } };
  service = await startTestService(options);
  other = await startTestService(options);
  agentToken = await issueAgentToken(service);
});
afterEach(() => service.clock.reset());
afterAll(async () => {
  await other?.stop();
  await service?.stop();
  await database?.remove();
});

const asOperator = (at: TestService, path: string, token: string) => {
  const headers = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
  return manage(at, 'POST', path, headers, new URLSearchParams({ token }).toString());
};
const agentStatus = async (token: string) => (await service.post(TOKEN, agentTokenBody(), bearer(token))).status;

/** What each kind of request says about a customer token. */
async function responsesTo(token: string) {
  const introspection = await asOperator(service, '/oauth2/introspect', token);
  const transfer = await service.post(TRANSFER, transferBody(), bearer(token));
  return {
    info: await infoStatus(service, token),
    transfer: transfer.status,
    active: introspection.body.active,
    reason: introspection.body.inactive_reason,
  };
}

/** A customer whose token all kinds of requests have accepted. */
async function customerWithVerifiedToken(): Promise<Customer> {
  const customer = await newCustomer(service);
  for (let use = 0; use < 2; use++)
    expect(await responsesTo(customer.access_token)).toEqual({ info: 200, transfer: 200, active: true });
  return customer;
}

describe('an access token that was verified before', () => {
  it.each<[string, string, (customer: Customer) => Promise<{ status: number }>]>([
    ['its holder', 'revoked', ({ access_token }) => other.send('DELETE', TOKEN, bearer(access_token))],
    ['the operator', 'revoked', ({ access_token }) => asOperator(other, '/oauth2/revoke', access_token)],
    [
      'the end of all sessions of its customer',
      'customer_generation',
      ({ entity_id }) => other.post('/v2/customer/end_sessions', { customer_id: entity_id }, bearer(agentToken)),
    ],
  ])('is refused by each kind of request after it was ended by %s', async (_, reason, end) => {
    const customer = await customerWithVerifiedToken();
    expect((await end(customer)).status).toBe(200);
    const { access_token } = customer;
    expect(await responsesTo(access_token)).toEqual({ info: 401, transfer: 401, active: false, reason });
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status, 'ended already').toBe(200);
  });

  it('is refused by the agent token grant after the agent has ended it', async () => {
    const ended = await issueAgentToken(service);
    for (let use = 0; use < 2; use++) expect(await agentStatus(ended)).toBe(200);
    expect((await other.send('DELETE', '/v2/token', bearer(ended))).status).toBe(200);
    expect(await agentStatus(ended)).toBe(401);
  });

  it('is refused by each kind of request after it has expired', async () => {
    const { access_token } = await customerWithVerifiedToken();
    service.clock.advance({ seconds: TTL_SECONDS + 1 });
    const reason = 'expired';
    expect(await responsesTo(access_token)).toEqual({ info: 401, transfer: 401, active: false, reason });
  });

  it('is refused after its key was removed, or replaced by another key with the same kid', async () => {
    const path = join(database.folder, 'keys.json');
    const before = readFileSync(path, 'utf8');
    const { keys } = JSON.parse(before) as PrivateKeySet;
    const added = generateKey(0);
    const sameKid = { ...generateKey(0), kid: String(keys[0]?.kid) };
    for (const [changed, reason] of [
      [added, 'unknown_key'],
      [sameKid, 'invalid_signature'],
    ] as const) {
      const { access_token } = await customerWithVerifiedToken();
      writeFileSync(path, JSON.stringify({ keys: [changed] }));
      await expect.poll(() => responsesTo(access_token)).toEqual({ info: 401, transfer: 401, active: false, reason });
      writeFileSync(path, before);
      await expect.poll(() => infoStatus(service, access_token)).toBe(200);
    }
  });
});
