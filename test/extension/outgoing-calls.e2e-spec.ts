import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import {
  describeRoute,
  startTestService as startKitService,
  testEnvironmentOf,
} from '@customer-authorization/conformance-kit';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { expectInvalidRequest } from '../support/expect-error.js';
import { smsExtension } from '../support/sms-extension.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const folder = mkdtempSync(join(tmpdir(), 'sms-'));
const received: { phone: string; text: string; authorization: string | undefined }[] = [];
let gatewayStatus: number | 'no response' = 200;

const gateway = createServer(async (request, response) => {
  const message = (await json(request)) as { phone: string; text: string };
  received.push({ ...message, authorization: request.headers.authorization });
  if (gatewayStatus !== 'no response') response.writeHead(gatewayStatus).end();
});
await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
vi.stubEnv('SMS_GATEWAY_URL', `http://127.0.0.1:${(gateway.address() as AddressInfo).port}/messages`);
vi.stubEnv('SMS_GATEWAY_KEY_FILE', join(folder, 'key'));
writeFileSync(join(folder, 'key'), 'key-of-the-gateway\n');

beforeEach(() => {
  gatewayStatus = 200;
});
afterAll(() => {
  gateway.closeAllConnections();
  gateway.close();
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

let phones = 0;

describeRoute('POST /v2/customer/sms_code', {
  ...smsExtension,
  upstream: { variable: 'SMS_GATEWAY_URL' },
  callers: [],
  anyClient: true,
  valid: ({ clientId, organizationId }) => ({
    body: { client_id: clientId, organization_id: organizationId, phone: `+49${30_000_000 + phones++}` },
  }),
});

describeRoute('POST /v2/customer/one_time_link', {
  ...smsExtension,
  callers: ['agent'],
  anyClient: true,
  agentScope: 'links:create',
  actsOn: { customer: 'entity_id' },
  valid: async ({ clientId, newCustomer }) => ({
    body: { client_id: clientId, entity_id: (await newCustomer()).entityId },
  }),
});

describe('a route of an extension that calls another system', () => {
  const service = useService(smsExtension);
  const start = { client_id: ACME_SITE, organization_id: ACME, phone: '+493012345678' };
  const ROUTE = '/v2/customer/sms_code';

  it('sends the code through the gateway and not to the caller', async () => {
    const { status, body } = await service.post(ROUTE, start);
    expect({ status, body }).toEqual({ status: 200, body: {} });
    const text = expect.stringMatching(/^Your code: \d{6}$/);
    expect(received.at(-1)).toEqual({ phone: start.phone, text, authorization: 'Bearer key-of-the-gateway' });
  });

  it.each([500, 401, 'no response'] as const)('responds with 503 if the gateway responds with %s', async (status) => {
    gatewayStatus = status;
    const response = await service.post(ROUTE, start);
    expect(response).toMatchObject({ status: 503, body: { error: 'temporarily_unavailable' } });
    expect(response.headers.get('retry-after')).toBe('1');
  });
});

describe('a route of an extension for agents', () => {
  it('gives an agent a link to a page of the client, for a customer of its organization', async () => {
    const agents = await startKitService(smsExtension);
    try {
      const { clientId, newCustomer, agentToken, other } = testEnvironmentOf(agents);
      const headers = { Authorization: `Bearer ${await agentToken('links:create')}` };
      const create = (entity_id: string) =>
        agents.post('/v2/customer/one_time_link', { client_id: clientId, entity_id }, headers);
      const { status, body } = await create((await newCustomer()).entityId);
      const ofOther = await create((await other.newCustomer()).entityId); // a customer of another organization
      const url = expect.stringMatching(/^https:.*#code=[\w-]{43}$/);
      expect({ status, body }).toEqual({ status: 200, body: { url } });
      expectInvalidRequest(ofOther, 'entity_id: unknown');
      expectInvalidRequest(await create('0198c2a4-7d7c-7c3e-8f57-5d2b1c9a4e01'), 'entity_id: unknown');
    } finally {
      await agents.stop();
    }
  });
});
