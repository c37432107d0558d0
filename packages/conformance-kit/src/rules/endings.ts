import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import { TOKEN } from '../test-environment.js';

const WITH_CALLER =
  "declare endsWith: 'caller' in @GrantType, store `proof()` of the caller, and return it as `proof`; or declare endsWith: 'nothing' if the proof outlives its caller";

/** Whether the author declares what ends a proof before its time. The endpoint enforces it (protocol §10.7). */
export function endingRules({ endsWith }: GrantMetadata): GrantRule[] {
  return endsWith === 'nothing' || endsWith === 'sessions' ? [] : [ENDS_WITH_CALLER];
}

const ENDS_WITH_CALLER: GrantRule = {
  title: 'gives no token after the bearer token that created the proof has ended',
  async check(subject) {
    const { sent, bearers, isOfRoute } = await subject.proof();
    if (!isOfRoute || bearers.length === 0) return;
    await endBearers(subject, bearers);
    await subject.expectNoToken(sent, 'a proof of a caller whose bearer token has ended', WITH_CALLER);
  },
};

async function endBearers({ service }: GrantSubject, bearers: string[]): Promise<void> {
  for (const authorization of bearers)
    for (const path of [TOKEN, '/v2/token']) await service.send('DELETE', path, { authorization });
}
