import { DataSource } from 'typeorm';
import { describe, expect, it, vi } from 'vitest';
import { Statement } from '../../../src/platform/database/statement.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../../support/cookie-grant.js';
import { refreshingRegistry, stayOf } from '../../support/customer-refresh.js';
import { endSessionsAsOperator } from '../../support/end-sessions.js';
import { purge } from '../../support/operator-commands.js';
import { rememberedPair } from '../../support/remember.js';
import { ACME, ACME_ORIGIN, ACME_SITE } from '../../support/test-registry.js';
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
async function visitGroups(count: number): Promise<{ cookie: string; accessToken: string }> {
  const first = await service.post(TOKEN, cookieBody());
  const cookie = cookieHeader(first);
  for (let group = 1; group < count; group++)
    await service.post(`/v2/customer/${ACME}/group-${group}/token`, cookieBody(), { cookie });
  return { cookie, accessToken: first.body.access_token };
}

const forget = (cookie: string) =>
  service.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie, origin: ACME_ORIGIN });

/** Creates rows for a list of this length, and returns the request or command that uses the list. */
type Scenario = (length: number) => Promise<() => Promise<unknown>>;

describe('a statement with a list of values', () => {
  it.each<[string, Scenario]>([
    [
      'a browser with many customers is forgotten',
      async (length) => {
        const { cookie, accessToken } = await visitGroups(length);
        await rememberedPair(service, accessToken, cookie);
        return () => forget(cookie);
      },
    ],
    [
      'a browser is forgotten from which others were made',
      async (length) => {
        const { cookie, accessToken } = await visitGroups(1);
        for (let copy = 0; copy < length; copy++) await rememberedPair(service, accessToken, cookie);
        return () => forget(cookie);
      },
    ],
    [
      'a browser with many customers is remembered',
      async (length) => {
        const { cookie, accessToken } = await visitGroups(length);
        return () => rememberedPair(service, accessToken, cookie);
      },
    ],
    [
      'a customer with many refresh families is erased',
      async (length) => {
        const { body } = await service.post(TOKEN, cookieBody());
        for (let family = 0; family < length; family++) await stayOf(service, body.access_token);
        return () => service.admin('DELETE', `/admin/identities/${body.entity_id}`);
      },
    ],
    [
      'the sessions and browsers of a customer with many links are ended',
      async (length) => {
        const { body } = await service.post(TOKEN, cookieBody());
        for (let link = 0; link < length; link++) await rememberedPair(service, body.access_token);
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
