import { beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { endSessions, endSessionsAsOperator } from '../../support/end-sessions.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { ADMIN_TOKEN, serviceOfTest, useService } from '../../support/use-service.js';

const service = useService();
let agent: string;
beforeAll(async () => {
  agent = await issueAgentToken(service);
});

const asOperator = (entityId: string) => endSessionsAsOperator(service, ADMIN_TOKEN, entityId);
const tokenByAgent = async (entity_id: string): Promise<string> =>
  (await service.post(TOKEN, agentTokenBody({ entity_id }), bearer(agent))).body.access_token;

describe('protocol §4.14: ending all sessions of a customer', () => {
  it('can be repeated, and ends only the tokens from before each time', async () => {
    const { entity_id } = await newCustomer(service);
    for (let round = 0; round < 3; round++) {
      const token = await tokenByAgent(entity_id);
      expect(await infoStatus(service, token)).toBe(200);
      expect((await asOperator(entity_id)).status).toBe(200);
      expect(await infoStatus(service, token)).toBe(401);
    }
  });

  it('does not depend on the clocks of the processes, which may differ by 30 s', async () => {
    const fast = await serviceOfTest({ database: service.database, environment: { ADMIN_TOKEN } });
    for (const seconds of [30, -30]) {
      fast.clock.reset();
      fast.clock.advance({ seconds });
      for (const [one, other] of [
        [service, fast],
        [fast, service],
      ] as const) {
        const first = await one.post(TOKEN, cookieBody());
        const code = await transferToken(one, first.body.access_token);
        const cookie = cookieHeader(first);
        expect((await endSessions(other, first.body.access_token)).status).toBe(200);
        for (const each of [one, other]) {
          expect(await infoStatus(each, first.body.access_token)).toBe(401);
          const next = await each.post(TOKEN, cookieBody(), { cookie });
          for (const reader of [one, other]) expect(await infoStatus(reader, next.body.access_token)).toBe(200);
        }
        expectInvalidGrant(await redeem(one, code));
      }
    }
  });
});
