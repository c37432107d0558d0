import { startTestService, type TestService, testEnvironmentOf } from '@customer-authorization/conformance-kit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import extension from '../src/index.js';

/** Long enough for a machine with other work. */
const SLOW_MS = 120_000;
const REJECTED = { status: 400, body: { error: 'invalid_grant' } };

describe('a link of an agent', { timeout: SLOW_MS }, () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService(extension);
  }, SLOW_MS);
  afterAll(() => service?.stop());

  /** The code of a new link for a customer. */
  async function linkFor(entity_id: string) {
    const { clientId: client_id, agentToken } = testEnvironmentOf(service);
    const headers = { Authorization: `Bearer ${await agentToken('agent_link:create')}` };
    const { status, body } = await service.post('/v2/customer/agent_link', { client_id, entity_id }, headers);
    return { status, body, code: body.url?.split('#code=')[1], headers };
  }
  const open = (code: string) => {
    const { clientId: client_id, organizationId: organization_id } = testEnvironmentOf(service);
    return service.post('/v2/customer/token', { grant_type: 'agent_link', client_id, organization_id, code });
  };

  it('opens once, and leads to the customer that the agent named', async () => {
    const { entityId } = await testEnvironmentOf(service).newCustomer();
    const { code } = await linkFor(entityId);
    expect(await open(code)).toMatchObject({ status: 200, body: { entity_id: entityId } });
    expect(await open(code)).toMatchObject(REJECTED);
  });

  it('does not open an hour after its creation', async () => {
    const { entityId } = await testEnvironmentOf(service).newCustomer();
    const { code, body } = await linkFor(entityId);
    expect(body.expires_in).toBe(3_600);
    service.clock.advance({ seconds: 3_600 });
    expect(await open(code)).toMatchObject(REJECTED);
  });

  it('gives a token that ends with the token of the agent', async () => {
    const { entityId } = await testEnvironmentOf(service).newCustomer();
    const { code, headers } = await linkFor(entityId);
    const { access_token } = (await open(code)).body;
    const info = () => service.send('GET', '/v2/customer/info', { Authorization: `Bearer ${access_token}` });
    expect((await info()).status).toBe(200);
    await service.send('DELETE', '/v2/token', headers);
    expect((await info()).status).toBe(401);
  });

  it('is not created for a customer of another organization', async () => {
    const { entityId } = await testEnvironmentOf(service).other.newCustomer();
    expect(await linkFor(entityId)).toMatchObject({ status: 400, body: { error_hint: 'entity_id: unknown' } });
  });
});
