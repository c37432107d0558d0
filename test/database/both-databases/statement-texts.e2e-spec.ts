import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { Statement } from '../../../src/platform/database/statement.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { purge } from '../../support/operator-commands.js';
import { rememberedPair } from '../../support/remember.js';
import { ACME } from '../../support/test-registry.js';
import { ADMIN_TOKEN, useService } from '../../support/use-service.js';

/** Lengths up to two more than the second size of a list, which is 8. */
const LENGTHS = [1, 2, 5, 8, 9, 10];
/** A list has one of four sizes. */
const MAX_TEXTS = 4;
const LIST = /\?(, ?\?)*/g;
const AFTER_EXPIRY_SECONDS = 740 * 86_400;

const service = useService(() => {
  const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
  return { registry };
});

/** Visits in as many groups. Each one has a customer of its own. */
async function visitGroups(count: number): Promise<void> {
  const cookie = cookieHeader(await service.post(TOKEN, cookieBody()));
  for (let group = 1; group < count; group++)
    await service.post(`/v2/customer/${ACME}/group-${group}/token`, cookieBody(), { cookie });
}

/** Creates rows for a list of this length, and returns the request or command that uses the list. */
type Scenario = (length: number) => Promise<() => Promise<unknown>>;

describe('a statement with a list of values', () => {
  it.each<[string, Scenario]>([
    [
      'an access token ends, with which many devices were made',
      async (length) => {
        const { body } = await service.post(TOKEN, cookieBody());
        for (let device = 0; device < length; device++) await rememberedPair(service, body.access_token);
        return () => service.send('DELETE', TOKEN, bearer(body.access_token));
      },
    ],
    [
      'a customer with many refresh tokens is erased',
      async (length) => {
        const { body } = await service.post(TOKEN, cookieBody());
        for (let device = 0; device < length; device++) await stayOf(service, body.access_token);
        return () => service.admin('DELETE', `/admin/customers/${body.entity_id}`);
      },
    ],
    [
      'the sessions and browsers of a customer with many devices are ended',
      async (length) => {
        const { body } = await service.post(TOKEN, cookieBody());
        for (let device = 0; device < length; device++) await rememberedPair(service, body.access_token);
        return () => endSessionsAsOperator(service, ADMIN_TOKEN, body.entity_id, { browsers: true });
      },
    ],
    [
      'idle browsers with many customers are purged',
      async (length) => {
        for (let browser = 1; browser < length; browser++) await new TestBrowser(service).visit();
        await visitGroups(length);
        // a later day each time, because the purge reads idle browsers once a day
        service.clock.advance({ seconds: AFTER_EXPIRY_SECONDS + length * 86_400 });
        return () => purge(service);
      },
    ],
  ])('has at most four texts for lists of 1 to 10 values: %s', async (_, scenario) => {
    const textsByShape = new Map<string, Set<string>>();
    const composed = vi.spyOn(Statement.prototype, 'text');
    const ofTypeOrm = vi.spyOn(service.application.get(DataSource).logger, 'logQuery');
    for (const length of LENGTHS) {
      const send = await scenario(length);
      composed.mockClear();
      ofTypeOrm.mockClear();
      await send();
      service.clock.reset();
      const texts = [
        ...composed.mock.results.map(({ value }) => value),
        ...ofTypeOrm.mock.calls.map(([sql]) => sql.replace(/ LIMIT \d+$/, '')),
      ];
      for (const text of texts) {
        const shape = text.replaceAll(LIST, '?');
        textsByShape.set(shape, (textsByShape.get(shape) ?? new Set()).add(text));
      }
    }
    composed.mockRestore();
    ofTypeOrm.mockRestore();
    const sizes = [...textsByShape].map(([shape, texts]) => [texts.size, shape] as const);
    expect(sizes.filter(([size]) => size > MAX_TEXTS)).toEqual([]);
    expect(
      sizes.some(([size]) => size > 1),
      'the scenario has lists of several lengths',
    ).toBe(true);
  });
});
