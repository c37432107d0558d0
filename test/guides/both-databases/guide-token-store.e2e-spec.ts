import mysql from 'mysql2/promise';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { useDatabase } from '../../support/databases.js';
import { loadExample } from '../../support/load-example.js';
import { ACME_BACKEND, BACKEND_SECRET } from '../../support/test-registry.js';
import { agentTokenPair } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

describe.runIf(onMariadb)('backend/token-store.js', () => {
  const service = useService();
  const database = useDatabase();
  let pools: mysql.Pool[];
  beforeAll(() => {
    pools = [1, 2].map(() => mysql.createPool(database.url.replace(/^mariadb/, 'mysql')));
  });
  afterAll(() => Promise.all((pools ?? []).map((pool) => pool.end())));

  it('lets two replicas renew the tokens once, and keeps the old tokens if a renewal fails', async () => {
    const { TokenStore } = await loadExample('backend/token-store.js');
    const { AgentSession } = await loadExample('backend/agent-session.js');
    const { access_token, refresh_token } = await agentTokenPair(service);
    const stores = pools.map((pool) => new TokenStore(pool));
    await stores[0].fill({ accessToken: access_token, expiresAtMs: 0, refreshToken: refresh_token });
    const options = { url: service.url, clientId: ACME_BACKEND, clientSecret: BACKEND_SECRET };
    const replicas = stores.map((store) => new AgentSession({ ...options, store }));
    const tokens = await Promise.all(replicas.map((replica) => replica.token()));
    expect(tokens[1]).toBe(tokens[0]);
    const renewed = await stores[1].read();
    expect(renewed).toMatchObject({ accessToken: tokens[0], refreshToken: expect.not.stringContaining(refresh_token) });
    const failing = stores[0].update(() => Promise.reject(new Error('renewal failed')));
    await expect(failing).rejects.toThrow('renewal failed');
    expect(await stores[1].update((current: object) => current)).toEqual(renewed);
  });

  it('says that a person must sign in if the row is missing', async () => {
    const { TokenStore } = await loadExample('backend/token-store.js');
    await pools[0]?.query('DELETE FROM agent_session');
    await expect(new TokenStore(pools[0]).read()).rejects.toThrow('a person must sign in first');
  });
});
