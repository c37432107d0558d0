import { CompactSign } from 'jose';
import { afterAll, describe, expect, it } from 'vitest';
import { AgentSession } from '../../../src/session/agent/agent-session.entity.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidToken } from '../../support/expect-error.js';
import { purge } from '../../support/operator-commands.js';
import { TestIssuer } from '../../support/test-issuer.js';
import { DAY_SECONDS, useService } from '../../support/use-service.js';

const END_OF_2099_SECONDS = 4_102_444_799;
const YEAR_10000_SECONDS = 253_402_300_800;

let idp: TestIssuer;
const service = useService(async () => {
  idp = await TestIssuer.start();
  return { environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify([idp.trust()]) } };
});
afterAll(() => idp?.stop());

const token = (claims: object) => idp.sign(service.clock.now(), claims);
const asAgent = (jwt: string) => service.post(TOKEN, agentTokenBody(), bearer(jwt));
const end = (jwt: string) => service.send('DELETE', '/v2/token', bearer(jwt));

/** Signs a payload as a text, because JSON has numbers that JavaScript cannot write. */
async function tokenWith(claim: string, number: string): Promise<string> {
  const { alg, kid, privateKey } = idp.keys[0] as TestIssuer['keys'][number];
  const [, payload = ''] = (await token({ [claim]: 0.5 })).split('.');
  const text = Buffer.from(payload, 'base64url').toString().replace(`"${claim}":0.5`, `"${claim}":${number}`);
  return new CompactSign(Buffer.from(text)).setProtectedHeader({ alg, kid, typ: 'at+jwt' }).sign(privateKey);
}

const OUT_OF_RANGE = [
  '-1',
  '-0.5',
  '-1e308',
  `${END_OF_2099_SECONDS + 1}`,
  `${YEAR_10000_SECONDS}`,
  '1900000000000',
  '9007199254740993',
  '1e308',
  '1e999',
  '"NaN"',
  '"1900000000"',
  'null',
  'true',
  '[1900000000]',
  '{}',
];

describe('protocol §6.10: a token of a trusted issuer', () => {
  it.each(['exp', 'nbf', 'iat', 'auth_time'])(
    'is rejected with 401 if %s is not between 1970 and 2100',
    async (claim) => {
      for (const number of OUT_OF_RANGE) {
        const jwt = await tokenWith(claim, number);
        expectInvalidToken(await asAgent(jwt));
        expectInvalidToken(await end(jwt));
      }
    },
  );

  it('may have fractions of seconds, and an expiry until the end of 2099', async () => {
    const times = { exp: END_OF_2099_SECONDS + 0.5, nbf: 0, iat: service.clock.seconds() - 0.5, auth_time: 1.5 };
    expect((await asAgent(await token(times))).status).toBe(200);
  });

  it('stays ended after each purge until it expires, and is purged two days later', async () => {
    const now = service.clock.seconds();
    const ended = await Promise.all([END_OF_2099_SECONDS, now + 400_000.25].map((exp) => token({ exp })));
    for (const jwt of ended) expect((await end(jwt)).status).toBe(200);
    for (const seconds of [0, 200_000, 199_990]) {
      service.clock.advance({ seconds });
      await purge(service);
      for (const jwt of ended) expectInvalidToken(await asAgent(jwt));
    }
    const rows = () => service.rowsOf(AgentSession).countBy({ kind: 'issuer' });
    const before = await rows();
    service.clock.advance({ seconds: 2 * DAY_SECONDS + 20 });
    await purge(service);
    expect(await rows()).toBe(before - 1);
  });
});
