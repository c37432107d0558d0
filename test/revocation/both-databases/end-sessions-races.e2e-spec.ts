import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { IS_NIGHTLY } from '../../nightly.js';
import { bearer } from '../../support/authorization-headers.js';
import { refreshingRegistry } from '../../support/customer-refresh.js';
import { END_SESSIONS } from '../../support/end-sessions.js';
import { type Given, raceEnd, sumOf } from '../../support/ending-race.js';
import { type ServiceProcess, startPod } from '../../support/processes.js';
import { type HttpClient, httpClientOf, startTestService, type TestService } from '../../support/test-service.js';

const ROUND_COUNT = IS_NIGHTLY ? 200 : 10;

describe.runIf(onMariadb)('protocol §4.14, in two processes', () => {
  let service: TestService;
  let pods: ServiceProcess[];
  let clients: HttpClient[];
  beforeAll(async () => {
    const registry = refreshingRegistry({ grants: { identity_token: { remember: ['browser', 'refresh_token'] } } });
    service = await startTestService({ registry });
    pods = await Promise.all([startPod(service), startPod(service)]);
    clients = pods.map(({ url }) => httpClientOf(url));
  });
  afterAll(async () => {
    await Promise.all((pods ?? []).map((pod) => pod.terminate()));
    await service?.stop();
  });

  it(`nothing that was made from a token of the customer gives a token afterwards, in ${ROUND_COUNT} rounds`, async () => {
    const rounds: Given[] = [];
    while (rounds.length < ROUND_COUNT) {
      const inTurn = rounds.length % 2 === 0 ? clients : clients.toReversed();
      const body = rounds.length % 4 < 2 ? {} : { browsers: true };
      const given = await raceEnd(inTurn, async ({ access_token, cookie }, client) => {
        const { status } = await client.post(END_SESSIONS, body, { ...bearer(access_token), cookie });
        expect(status).toBe(200);
      });
      rounds.push(given);
    }
    for (const [what, count] of Object.entries(sumOf(rounds))) expect(count, what).toBeGreaterThan(0);
  });
});
