import { afterEach, describe, expect, it } from 'vitest';
import { MigrationState } from '../../src/access-token/migration-state.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { identitiesOf } from '../support/identities.js';
import { completeUpgradeOf, startServiceBeforeCompletion } from '../support/migration-state.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { statementsOf } from '../support/statements.js';
import { startTestService, type TestService } from '../support/test-service.js';

describe('protocol §9.6: the state of the upgrade from release 1', () => {
  let service: TestService;
  afterEach(() => service?.stop());

  const assertComplete = () => service.application.get(MigrationState).assertComplete();

  it('is complete in a new database, and is not read again', async () => {
    service = await startTestService();
    const sent = await statementsOf(service, async () => {
      await assertComplete();
      await assertComplete();
    });
    expect(sent).toEqual([]);
    expect(await completeUpgradeOf(service)).toBe(false);
  });

  it('is incomplete in a database with data of release 1 until migrate --complete has run', async () => {
    service = await startServiceBeforeCompletion();
    const error = { status: 503, code: 'temporarily_unavailable' };
    await expect(assertComplete()).rejects.toMatchObject(error);
    await expect(assertComplete()).rejects.toMatchObject(error);
    expect(await completeUpgradeOf(service)).toBe(true);
    expect(await completeUpgradeOf(service)).toBe(false);
    await assertComplete();
  });

  it('responds with 503 to external_id until it is complete, and creates no customer', async () => {
    service = await startServiceBeforeCompletion();
    const agent = bearer(await issueAgentToken(service));
    const send = () => service.post(TOKEN, agentTokenBody({ external_id: 'user' }), agent);
    const refused = await send();
    expectError(refused, { status: 503, error: 'temporarily_unavailable', hint: undefined });
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await identitiesOf(service).count()).toBe(0);
    expect((await service.post(TOKEN, agentTokenBody(), agent)).status).toBe(200);
    await completeUpgradeOf(service);
    expect((await send()).status).toBe(200);
  });
});
