import { afterAll, expect, it, vi } from 'vitest';
import { Registry } from '../../../src/registry/registry.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { manage } from '../../support/management-api.js';
import { ACME } from '../../support/test-registry.js';
import { startTestService, type TestService } from '../../support/test-service.js';
import { infoStatus } from '../../support/transfers.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

const OPERATOR = bearer(ADMIN_TOKEN);

let service: TestService;
/** Runs after the service of the fixture has stopped. */
afterAll(async () => {
  await service?.stop();
});
const other = useService(async () => {
  service = await startTestService({ environment: { ADMIN_TOKEN } });
  return { database: service.database };
});

/** Renews the registry of the other process once, then makes its renewals wait until the returned function is called. */
async function stopRenewals(): Promise<() => void> {
  const registry = other.application.get(Registry, { strict: false });
  const renew = registry.renew.bind(registry);
  let letRenew = () => {};
  const isReleased = new Promise<void>((resolve) => {
    letRenew = resolve;
  });
  vi.spyOn(registry, 'renew').mockImplementation(() => isReleased.then(renew));
  await renew();
  return letRenew;
}

it('a token of a deleted client is refused, also from a process that did not know of the deletion', async () => {
  const client = { client_id: 'short-lived', name: 'Short-lived', client_type: 'web', organization_id: ACME };
  expect((await manage(service, 'POST', '/admin/clients', OPERATOR, client)).status).toBe(201);
  const requestToken = async () => {
    const { status, body } = await other.post(TOKEN, cookieBody({ client_id: client.client_id }));
    return status === 200 ? (body.access_token as string) : undefined;
  };
  const letRenew = await stopRenewals();
  expect((await manage(service, 'DELETE', `/admin/clients/${client.client_id}`, OPERATOR)).status).toBe(200);
  const first = await requestToken();
  expect(first).toBeDefined();
  letRenew();
  const tokens = [first as string];
  for (let token = await requestToken(); token; token = await requestToken()) tokens.push(token);
  expect(await infoStatus(other, tokens[0] as string)).toBe(401);
  expect(await infoStatus(other, tokens.at(-1) as string)).toBe(401);
});
