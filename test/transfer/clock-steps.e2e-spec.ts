import { beforeAll, describe, expect, it } from 'vitest';
import { refresh } from '../support/agent-tokens.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { agentTokenPair, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const HOUR_SECONDS = 3_600;

const service = useService();
let customerToken: string;
beforeAll(async () => {
  customerToken = (await newCustomer(service)).access_token;
});

describe('a clock that is set back and forward again', () => {
  it('does not let a code be redeemed twice at any later time', async () => {
    const code = await transferToken(service, customerToken);
    expect((await redeem(service, code)).status).toBe(200);
    for (const seconds of [-1, -HOUR_SECONDS, 2 * HOUR_SECONDS, -HOUR_SECONDS, -24 * HOUR_SECONDS]) {
      service.clock.advance({ seconds });
      expectInvalidGrant(await redeem(service, code));
    }
  });

  it('does not let an expired code give two tokens', async () => {
    const code = await transferToken(service, customerToken);
    service.clock.advance({ seconds: HOUR_SECONDS });
    expectInvalidGrant(await redeem(service, code));
    service.clock.advance({ seconds: -HOUR_SECONDS });
    expect((await redeem(service, code)).status).toBe(200);
    expectInvalidGrant(await redeem(service, code));
  });

  it('does not let a refresh family get a second valid successor, and reuse still revokes the family', async () => {
    const first = (await agentTokenPair(service)).refresh_token;
    const next = (await refresh(service, first)).body.refresh_token;
    service.clock.advance({ seconds: -HOUR_SECONDS });
    const last = (await refresh(service, next)).body.refresh_token;
    for (const used of [first, next, last]) expectInvalidGrant(await refresh(service, used));
  });
});
