import { afterAll, beforeAll, expect, it } from 'vitest';
import { AgentBrowser, FOR_TOKEN } from '../support/authorization-page.js';
import { usePasswordHashCostOfProduction } from '../support/cheap-password-hashes.js';
import { ACME_AGENT } from '../support/test-registry.js';
import { startTestService, type TestService } from '../support/test-service.js';

const ROUND_COUNT = 15;

usePasswordHashCostOfProduction();
let service: TestService;
beforeAll(async () => {
  service = await startTestService({ environment: { TRUST_PROXY: '1' } });
});
afterAll(() => service?.stop());

/** Response time of one attempt in milliseconds, from an IP address that has made no attempt before. */
async function timeOf(email: string, round: number): Promise<number> {
  const browser = new AgentBrowser(service, { 'x-forwarded-for': `203.0.113.${round}` });
  const page = await browser.open(FOR_TOKEN);
  const startMs = performance.now();
  const { status } = await browser.submit(page, { email, password: 'a wrong password' });
  expect(status).toBe(400);
  return performance.now() - startMs;
}

const median = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] as number;

it('a sign-in with an unknown email takes as long as one with a wrong password', async () => {
  const [unknown, wrong]: [number[], number[]] = [[], []];
  for (let round = 0; round < ROUND_COUNT; round++) {
    wrong.push(await timeOf(ACME_AGENT.email, 2 * round));
    unknown.push(await timeOf(`unknown${round}@acme.example`, 2 * round + 1));
  }
  const ratio = median(unknown) / median(wrong);
  expect(ratio).toBeGreaterThan(0.6);
  expect(ratio).toBeLessThan(1.6);
});
