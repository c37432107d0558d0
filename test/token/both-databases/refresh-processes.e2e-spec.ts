import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { AS_BACKEND } from '../../support/agent-tokens.js';
import { currentOf } from '../../support/customer-refresh.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { type ServiceProcess, startPod } from '../../support/processes.js';
import { request, startTestService, type TestService } from '../../support/test-service.js';
import { agentTokenPair } from '../../support/transfers.js';

const REQUESTS_PER_RACE = 12;

describe.runIf(onMariadb)('a refresh token that is used in two processes at the same time', () => {
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

  it('gives one successor to all requests, in every round', async () => {
    let token = (await agentTokenPair(service)).refresh_token;
    for (let round = 0; round < 5; round++) {
      const responses = await Promise.all(
        Array.from({ length: REQUESTS_PER_RACE }, (_, index) => refreshAt(index, token)),
      );
      for (const response of responses) if (response.status !== 200) expectInvalidGrant(response);
      const refreshTokens = responses
        .filter(({ status }) => status === 200)
        .map(({ body }) => body.refresh_token as string);
      expect(refreshTokens.length).toBeGreaterThan(0);
      const current = await currentOf(service, refreshTokens);
      expect(new Set(current).size).toBe(1);
      expect(refreshTokens).toHaveLength(current.length);
      token = current[0] as string;
    }
    expect((await refreshAt(0, token)).status).toBe(200);
  });
});
