import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { issueAgentToken } from '../support/operator-commands.js';
import { testRegistry } from '../support/test-registry.js';
import { newCustomer } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const EXAMPLES = join(import.meta.dirname, '../../examples/integrating/resource-server');

const service = useService({ registry: testRegistry() });
let agentToken: string;
beforeAll(async () => {
  agentToken = await issueAgentToken(service);
  process.env.AUTH_URL = 'https://auth.example';
  process.env.JWKS_URL = `${service.url}/.well-known/jwks.json`;
});

describe.each(['jose.js', 'fast-jwt.js'])('resource-server/%s, if the keys cannot be fetched', (name) => {
  it('accepts tokens of known keys, and otherwise responds with 503 to a valid token', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'Date'], now: Date.now() });
    const { access_token, entity_id } = await newCustomer(service);
    const fetchOfTest = globalThis.fetch;
    let isAvailable = false;
    let requests = 0;
    globalThis.fetch = (...parameters: Parameters<typeof fetch>) => {
      requests += 1;
      return isAvailable ? fetchOfTest(...parameters) : Promise.reject(new TypeError('fetch failed'));
    };
    try {
      const { verify, statusOf } = await import(`${join(EXAMPLES, name)}?without-keys`); // a module of its own, which has no keys yet
      const statusFor = async (token: string) => {
        try {
          return (await verify(token)).sub;
        } catch (error) {
          return statusOf(error);
        }
      };
      expect(await statusFor(access_token)).toBe(503);
      isAvailable = true;
      expect(await statusFor(access_token)).toBe(entity_id);
      const damaged = `${access_token.slice(0, -8)}AAAAAAAA`;
      for (const wrong of [agentToken, damaged, 'dev:x', 'x']) expect(await statusFor(wrong)).toBe(401);
      isAvailable = false;
      const before = requests;
      await vi.advanceTimersByTimeAsync(600_000);
      expect(requests).toBeGreaterThan(before);
      expect(await statusFor(access_token)).toBe(entity_id);
    } finally {
      globalThis.fetch = fetchOfTest;
      vi.useRealTimers();
    }
  });
});
