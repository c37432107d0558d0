import { DataSource, IsNull } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from '../../src/platform/secret.js';
import { RefreshFamily } from '../../src/refresh-token/refresh-family.entity.js';
import { onMariadb } from '../../src/testing/test-database.js';
import { AS_BACKEND } from '../support/agent-tokens.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { type ServiceProcess, startPod } from '../support/processes.js';
import { request, startTestService, type TestService } from '../support/test-service.js';
import { agentTokenPair } from '../support/transfers.js';

const RACE_SIZE = 12;

describe.runIf(onMariadb)('a refresh token that is used at two processes at once', { timeout: 60_000 }, () => {
  let service: TestService;
  let pods: ServiceProcess[];
  beforeAll(async () => {
    service = await startTestService();
    pods = await Promise.all([startPod(service), startPod(service)]);
  });
  afterAll(async () => {
    expect(await Promise.all(pods?.map((pod) => pod.terminate()))).toEqual([0, 0]);
    await service?.stop();
  });

  const refreshAt = (index: number, refresh_token: string) => {
    const { url } = pods[index % pods.length] as ServiceProcess;
    const body = JSON.stringify({ grant_type: 'refresh_token', refresh_token, ...AS_BACKEND });
    return request(`${url}/v2/token`, { method: 'POST', body });
  };

  it('leaves one live chain, that of one of the answers, round after round', async () => {
    let token = (await agentTokenPair(service)).refresh_token;
    for (let round = 0; round < 10; round++) {
      const answers = await Promise.all(Array.from({ length: RACE_SIZE }, (_, index) => refreshAt(index, token)));
      for (const answer of answers) if (answer.status !== 200) expectInvalidGrant(answer);
      const given = answers.filter(({ status }) => status === 200).map(({ body }) => body.refresh_token as string);
      expect(given.length).toBeGreaterThan(0);
      const live = await liveOf(given);
      expect(live).toHaveLength(1);
      token = live[0] as string;
    }
    expect((await refreshAt(0, token)).status).toBe(200);
  });

  /** Those of the tokens that the database knows as the current one of their chain. */
  async function liveOf(tokens: string[]): Promise<string[]> {
    const families = service.application.get(DataSource).getRepository(RefreshFamily);
    const current = (await families.find({ where: { endedAt: IsNull() } })).map(({ currentHash }) => currentHash);
    return tokens.filter((token) => current.includes(sha256(token)));
  }
});
