import { afterAll, describe, expect, it, vi } from 'vitest';
import { createTestDatabase, onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { useDatabase } from '../../support/databases.js';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.js';
import { useService } from '../../support/use-service.js';

describe.runIf(onMariadb)('the liveness probe of a process without its database', () => {
  const database = useDatabase(createTestDatabase);
  let proxy: TcpProxy;
  afterAll(() => proxy?.close());
  const urlOfProxy = async () => {
    proxy ??= await startTcpProxy(database.url);
    return proxy.through(database.url);
  };
  const restarting = useService(async () => ({
    database,
    environment: { DATABASE_URL: await urlOfProxy(), LIVENESS_OUTAGE_SECONDS: '60' },
  }));
  const ordinary = useService(async () => ({ database, environment: { DATABASE_URL: await urlOfProxy() } }));

  const visit = async ({ post }: typeof restarting) => (await post(TOKEN, cookieBody())).status;

  /** The status of the probe, as it would be after more seconds of the same state. */
  async function liveAfter(seconds: number, { managementUrl }: typeof restarting): Promise<number> {
    const later = performance.now() + seconds * 1_000;
    const clock = vi.spyOn(performance, 'now').mockReturnValue(later);
    const { status } = await fetch(`${managementUrl}/health/live`);
    clock.mockRestore();
    return status;
  }

  it('fails after LIVENESS_OUTAGE_SECONDS, and no longer when a statement has succeeded', async () => {
    await proxy.cut();
    expect(await visit(restarting)).toBe(503);
    expect(await liveAfter(0, restarting)).toBe(200);
    expect(await liveAfter(60, restarting)).toBe(503);
    await proxy.restore();
    await expect.poll(() => visit(restarting)).toBe(200);
    expect(await liveAfter(60, restarting)).toBe(200);
  });

  it('does not depend on the database without LIVENESS_OUTAGE_SECONDS', async () => {
    await proxy.cut();
    expect(await visit(ordinary)).toBe(503);
    expect(await liveAfter(86_400, ordinary)).toBe(200);
    await proxy.restore();
  });
});
