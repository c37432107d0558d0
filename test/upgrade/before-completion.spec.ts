import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { moveOf, remember } from '../support/remember.js';
import { writeRegistry } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { both, pods, testEnvironment } from './both-releases.js';
import {
  acme,
  customersOf,
  data,
  EARLIER_USER,
  FROM_PHONE,
  forget,
  PHONE_SITE,
  REMEMBERING,
  startWithRelease1Data,
  withExternalId,
} from './release-1-data.js';
import { registryOfRelease1 } from './release-1-registry.js';

startWithRelease1Data();

describe('protocol §9.6: before migrate --complete', () => {
  it('a process of release 2 logs a warning at its start', () => {
    expect(pods[2].process.stdout).toContain('node dist/cli.js migrate --complete');
  });

  it.each<[string, () => Promise<TestResponse>]>([
    ['external_id', () => withExternalId(pods[2], randomUUID())],
    ['external_id of an earlier user', () => withExternalId(pods[2], EARLIER_USER)],
    ['forget', () => forget(pods[2], data.browser.cookie)],
    ['remember with a transfer token of release 1', () => remember(pods[2], data.moves[0], FROM_PHONE)],
    [
      'remember with a transfer token of release 2',
      async () => remember(pods[2], await moveOf(pods[2], data.browser.token, { client_id: PHONE_SITE }), FROM_PHONE),
    ],
  ])('%s gets 503, sets no cookie and changes nothing', async (_, send) => {
    const response = await send();
    expectError(response, { status: 503, error: 'temporarily_unavailable', hint: undefined });
    expect(response.cookies).toEqual([]);
    for (const pod of both()) expect(await customersOf(pod, data.browser.cookie)).toEqual(data.browser.ids);
  });

  it('a process of release 1 starts and serves with a client that release 2 lets use remember', async () => {
    const restarted = await testEnvironment.start(1);
    const visit = await restarted.post(TOKEN, cookieBody({ client_id: PHONE_SITE }));
    expect(visit.status).toBe(200);
    expect(await customersOf(restarted, data.browser.cookie)).toEqual(data.browser.ids);
    expect(await restarted.terminate()).toBe(0);
  });

  it('a process of release 1 does not start with a registry file that has fields of release 2', async () => {
    const { organizations, clients, ...registry } = registryOfRelease1(acme);
    const file = {
      ...registry,
      organizations: organizations.map((entry) => ({ ...entry, public_clients: 'all', idle_days: 30 })),
      clients: clients.map((entry) => ({ ...entry, customer_token_ttl: 60, grants: REMEMBERING })),
    };
    const start = (name: string, document: object) =>
      testEnvironment.start(1, { REGISTRY_FILE: writeRegistry(join(testEnvironment.folder, name), document) });
    const fields = ['public_clients', 'idle_days', 'customer_token_ttl', 'grants'];
    const message = new RegExp(`registry file is refused:(.*${fields.join('|')})`, 's');
    await expect(start('fields.yaml', file)).rejects.toThrow(message);
    await expect(start('revision.yaml', { ...registry, organizations, clients, revision: 1 })).rejects.toThrow(
      /revision/,
    );
  });

  it('a process of release 1 ignores external_id and remember', async () => {
    const responses = [await withExternalId(pods[1], EARLIER_USER), await withExternalId(pods[1], EARLIER_USER)];
    expect(new Set([data.userCustomer, ...responses.map(({ body }) => body.entity_id)]).size).toBe(3);
    const move = await moveOf(pods[1], data.browser.token, { client_id: PHONE_SITE });
    const response = await remember(pods[1], move, FROM_PHONE);
    expect([response.status, response.cookies]).toEqual([200, []]);
  });
});
