import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { manage } from '../support/management-api.js';
import { completeUpgradeOf, startServiceBeforeCompletion } from '../support/migration-state.js';
import { FEED_SERVERS, FeedConsumer } from '../support/revocation-feed.js';
import { ACME, testRegistry } from '../support/test-registry.js';
import type { TestService } from '../support/test-service.js';

const ADMIN_TOKEN = 'operator-of-the-feed-upgrade-test';
const registry = { ...testRegistry(), resource_servers: FEED_SERVERS };

/** The statements of release 1. */
const INSERT = 'INSERT INTO revocation (kind, value, issued_before, expires_at) VALUES (?, ?, ?, ?)';
const UPDATE = 'UPDATE revocation SET issued_before = ?, expires_at = ? WHERE kind = ? AND value = ?';
const EVER = '9999-12-31 00:00:00.000';

describe('the revocation feed during the upgrade from release 1', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startServiceBeforeCompletion({ registry, environment: { ADMIN_TOKEN } });
  });
  afterAll(() => service?.stop());

  const query = (sql: string, parameters: unknown[]) => service.application.get(DataSource).query(sql, parameters);
  const inSeconds = (seconds: number) =>
    new Date(service.clock.now() + seconds * 1000).toISOString().replace('T', ' ').slice(0, -1);
  const isoTime = (sqlTime: string) => `${sqlTime.replace(' ', 'T')}Z`;

  it.each(['jti', 'family', 'client', 'subject'])(
    'has a row that a process of release 1 inserted: %s',
    async (kind) => {
      const issuedBefore = kind === 'jti' || kind === 'family' ? EVER : inSeconds(0);
      const expiresAt = inSeconds(600);
      await query(INSERT, [kind, `old-${kind}`, issuedBefore, expiresAt]);
      const entry = await new FeedConsumer([service]).find({ kind, value: `old-${kind}` });
      expect(entry).toMatchObject({ issued_before: isoTime(issuedBefore), expires_at: isoTime(expiresAt) });
    },
  );

  it.each(['client', 'subject'])('has a row again that a process of release 1 changed: %s', async (kind) => {
    const consumer = new FeedConsumer([service]);
    const value = `changed-${kind}`;
    await query(INSERT, [kind, value, inSeconds(-60), inSeconds(600)]);
    await consumer.find({ value });
    const issuedBefore = inSeconds(0);
    await query(UPDATE, [issuedBefore, inSeconds(700), kind, value]);
    await consumer.find({ value, issued_before: isoTime(issuedBefore) });
  });

  it('has the generation of an agent, and no row that only release 1 applies', async () => {
    const headers = bearer(ADMIN_TOKEN);
    const password = 'a password of the agent';
    const entry = { email: 'upgrade@acme.example', name: 'New', organization_id: ACME, password };
    const { id } = (await manage(service, 'POST', '/admin/agents', headers, entry)).body;
    await manage(service, 'PATCH', `/admin/agents/${id}`, headers, { password: `${password} 2` });
    await new FeedConsumer([service]).find({ kind: 'subject', value: id, generation: 1 });
    const late = new FeedConsumer([service]);
    await late.catchUp();
    expect(late.entries.filter(({ value, issued_before }) => value === id && issued_before)).toEqual([]);
  });

  it('goes on after the upgrade is complete', async () => {
    await completeUpgradeOf(service);
    await query(INSERT, ['jti', 'after-the-upgrade', EVER, inSeconds(600)]);
    await new FeedConsumer([service]).find({ value: 'after-the-upgrade' });
  });
});
