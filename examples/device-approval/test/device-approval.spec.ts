import { startTestService, type TestResponse, type TestService } from '@customer-authorization/conformance-kit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DEVICE_APPROVAL_LIMITS } from '../src/device-approval.limits.js';
import { DeviceApprovalParticipant } from '../src/device-approval-participant.js';
import extension from '../src/index.js';

const ORGANIZATION = '390e44e6-f1e6-4368-86dd-b74514508c2e';
const OTHER_ORGANIZATION = '5f0f6f0a-6a0e-4d6f-8f36-0a4f2b6a9c11';
const ROUTES = '/v2/customer/device_approval';
const SITE = { client_id: 'acme-site', organization_id: ORGANIZATION };
const TELEVISION = { client_id: 'acme-television', organization_id: ORGANIZATION };
const clientOf = (client_id: string, organization_id: string, more: object = {}) => ({
  client_id,
  name: client_id,
  client_type: 'native',
  organization_id,
  ...more,
});
const registry = {
  organizations: [
    { id: ORGANIZATION, name: 'Acme', public_clients: [] },
    { id: OTHER_ORGANIZATION, name: 'Rival', public_clients: [] },
  ],
  clients: [
    clientOf('acme-site', ORGANIZATION),
    clientOf('acme-television', ORGANIZATION, { grant_types: ['device_approval'] }),
    clientOf('rival-site', OTHER_ORGANIZATION),
  ],
};

let service: TestService;
const start = (environment: Record<string, string> = {}) => startTestService({ ...extension, registry, environment });
beforeEach(async () => {
  service = await start();
});
afterEach(() => service?.stop());

/** Tests have no limits unless they set them. The clock is at the start of a window of 600 s. */
async function startWithLimits(): Promise<void> {
  await service.stop();
  const limits = Object.entries(DEVICE_APPROVAL_LIMITS).map(([name, limit]) => `${name}=${limit}`);
  service = await start({ RATE_LIMIT: limits.join(), TRUST_PROXY: '1' });
  service.clock.advance({ seconds: 600 - (service.clock.seconds() % 600) });
}

interface Codes {
  device_code: string;
  user_code: string;
}

async function newCustomer(client: object = SITE): Promise<{ entityId: string; token: string }> {
  const { body } = await service.post('/v2/customer/token', {
    grant_type: 'cookie',
    response_type: 'token',
    ...client,
  });
  return { entityId: body.entity_id, token: body.access_token };
}

async function newDevice(client: object = TELEVISION): Promise<Codes> {
  return (await service.post(`${ROUTES}/start`, client)).body;
}

const decide = (token: string, user_code: string, decision = 'approve'): Promise<TestResponse> =>
  service.post(`${ROUTES}/decide`, { user_code, decision }, { Authorization: `Bearer ${token}` });

const poll = (device_code: string, client_id = 'acme-television'): Promise<TestResponse> =>
  service.post('/v2/customer/token', { grant_type: 'device_approval', client_id, device_code });

const errorOf = async (response: Promise<TestResponse>): Promise<unknown> => (await response).body.error;

describe('a new device', () => {
  it('gets a token for the customer that approved it', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    expect(await errorOf(poll(device_code))).toBe('authorization_pending');
    expect((await decide(customer.token, user_code)).status).toBe(200);
    expect(await poll(device_code)).toMatchObject({ status: 200, body: { entity_id: customer.entityId } });
  });

  it('gets one token when it sends 20 polls at once', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    await decide(customer.token, user_code);
    const responses = await Promise.all(Array.from({ length: 20 }, () => poll(device_code)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(responses.filter(({ body }) => body.error === 'invalid_grant')).toHaveLength(19);
  });

  it('gets slow_down when it polls again within five seconds', async () => {
    const { device_code } = await newDevice();
    expect(await errorOf(poll(device_code))).toBe('authorization_pending');
    service.clock.advance({ seconds: 4 });
    expect(await errorOf(poll(device_code))).toBe('slow_down');
    service.clock.advance({ seconds: 1 });
    expect(await errorOf(poll(device_code))).toBe('authorization_pending');
  });

  it('gets access_denied when the customer denied it', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    await decide(customer.token, user_code, 'deny');
    expect(await errorOf(poll(device_code))).toBe('access_denied');
  });

  it('gets expired_token ten minutes after its start, also when a customer approved it', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    service.clock.advance({ seconds: 599 });
    expect((await decide(customer.token, user_code)).status).toBe(200);
    service.clock.advance({ seconds: 1 });
    expect(await errorOf(poll(device_code))).toBe('expired_token');
  });

  it('gets invalid_grant for the code of another client', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    await decide(customer.token, user_code);
    expect(await errorOf(poll(device_code, 'acme-site'))).toBe('invalid_grant');
    expect((await poll(device_code)).status).toBe(200);
  });

  it('gets no token when the sessions of the customer ended after the approval', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    await decide(customer.token, user_code);
    await service.post('/v2/customer/end_sessions', {}, { Authorization: `Bearer ${customer.token}` });
    expect(await errorOf(poll(device_code))).toBe('invalid_grant');
  });
});

describe('the token of a new device', () => {
  it('ends with the token that approved it, and cannot approve a device after 8 approvals in a chain', async () => {
    const customer = await newCustomer();
    const tokens = [customer.token];
    const approved = async () => {
      const { device_code, user_code } = await newDevice();
      const decided = await decide(tokens.at(-1) as string, user_code);
      return decided.status === 200 ? poll(device_code) : decided;
    };
    while (tokens.length <= 8) tokens.push((await approved()).body.access_token);
    expect(await errorOf(approved())).toBe('invalid_grant');
    const { device_code, user_code } = await newDevice();
    await decide(customer.token, user_code);
    await service.send('DELETE', '/v2/customer/token', { Authorization: `Bearer ${customer.token}` });
    expect(await errorOf(poll(device_code))).toBe('invalid_grant');
    for (const token of tokens)
      expect((await service.send('GET', '/v2/customer/info', { Authorization: `Bearer ${token}` })).status).toBe(401);
  });
});

describe('the rows of a customer', () => {
  it('are in the export of the operator without the codes, until the customer is erased', async () => {
    const token = 'admin-token-with-enough-entropy-0123456789';
    await service.stop();
    service = await start({ ADMIN_TOKENS: `tests:support:${token}` });
    const [customer, { user_code }] = [await newCustomer(), await newDevice()];
    await decide(customer.token, user_code);
    const headers = { Authorization: `Bearer ${token}` };
    const url = `${service.managementUrl}/admin/customers/${customer.entityId}`;
    const exported = await (await fetch(`${url}/export`, { headers })).text();
    expect(JSON.parse(exported).tables.device_approval).toHaveLength(1);
    expect(exported).not.toContain(user_code);
    expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(200);
    expect(await service.application.get(DeviceApprovalParticipant).exportRows(customer.entityId)).toEqual({
      device_approval: [],
    });
  });
});

describe('a customer', () => {
  it('cannot decide about a device of another organization', async () => {
    const stranger = await newCustomer({ client_id: 'rival-site', organization_id: OTHER_ORGANIZATION });
    const { device_code, user_code } = await newDevice();
    expect(await errorOf(decide(stranger.token, user_code))).toBe('invalid_request');
    expect(await errorOf(poll(device_code))).toBe('authorization_pending');
  });

  it('cannot change a decision', async () => {
    const [customer, { device_code, user_code }] = [await newCustomer(), await newDevice()];
    await decide(customer.token, user_code, 'deny');
    expect(await errorOf(decide(customer.token, user_code))).toBe('invalid_request');
    expect(await errorOf(poll(device_code))).toBe('access_denied');
  });

  it('may type the code in lower case and with a hyphen', async () => {
    const [customer, { user_code }] = [await newCustomer(), await newDevice()];
    const typed = `${user_code.slice(0, 4)}-${user_code.slice(4)}`.toLowerCase();
    expect((await decide(customer.token, typed)).status).toBe(200);
  });

  it('has ten guesses in ten minutes', async () => {
    await startWithLimits();
    const { token } = await newCustomer();
    const responses = await Promise.all(Array.from({ length: 15 }, () => decide(token, 'BBBBBBBB')));
    expect(responses.filter(({ status }) => status === 400)).toHaveLength(10);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(5);
  });

  it('shares 40 guesses in ten minutes with the other customers of its network', async () => {
    await startWithLimits();
    const customers = await Promise.all(Array.from({ length: 5 }, () => newCustomer()));
    const guesses = customers.flatMap(({ token }) => Array.from({ length: 10 }, () => decide(token, 'BBBBBBBB')));
    const responses = await Promise.all(guesses);
    expect(responses.filter(({ status }) => status === 400)).toHaveLength(40);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(10);
  });

  it('keeps the guesses of a customer while its network has none left', async () => {
    await startWithLimits();
    const { token } = await newCustomer();
    const others = await Promise.all(Array.from({ length: 4 }, () => newCustomer()));
    const from = (ip: string, each = token) =>
      service.post(
        `${ROUTES}/decide`,
        { user_code: 'BBBBBBBB', decision: 'approve' },
        { Authorization: `Bearer ${each}`, 'X-Forwarded-For': ip },
      );
    const guessTen = (ip: string, each?: string) => Promise.all(Array.from({ length: 10 }, () => from(ip, each)));
    for (const other of others) await guessTen('203.0.113.7', other.token);
    expect((await guessTen('203.0.113.7')).map(({ status }) => status)).toEqual(Array(10).fill(429));
    expect((await guessTen('198.51.100.1')).map(({ status }) => status)).toEqual(Array(10).fill(400));
    expect((await from('198.51.100.1')).status).toBe(429);
  });
});
