import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import type { GrantKit, PendingProof } from '../kit.js';
import { about, undeclared } from '../rule.js';

/** RFC 8628 §3.5: after `slow_down` the client waits this much longer between its polls. */
const SLOW_DOWN_SECONDS = 5;
const SLOW_DOWN = 'store the time of the last poll, and throw OAuthError.slowDown() for a poll within the interval';
const CREATE_LATER = 'create the customer when the grant redeems the confirmed proof';

/** A grant that is polled until a person confirms its proof (RFC 8628 §3.5). */
export function pendingRules({ polling }: GrantMetadata, { pending }: GrantKit): GrantRule[] {
  if (!polling) return [];
  if (pending === undefined)
    return [
      undeclared(
        'has a test that declares `pending`, because the grant declares `polling`',
        'pending: return { parameters, confirm, intervalSeconds } of an unconfirmed proof',
      ),
    ];
  return [
    {
      title: 'answers polls by RFC 8628, and gives one token to one customer after the confirmation',
      check: (subject) =>
        subject.service.clock.whileStopped(async () => {
          const before = createdCustomers(subject);
          await pollUntilUsed(subject, await pending(subject.environment), before);
        }),
    },
  ];
}

async function pollUntilUsed(subject: GrantSubject, proof: PendingProof, before: number): Promise<void> {
  const { clock } = subject.service;
  const { parameters, confirm, intervalSeconds } = proof;
  const sent = await subject.requestOf(parameters);
  const wait = () => clock.advance({ seconds: intervalSeconds + SLOW_DOWN_SECONDS });
  const poll = (what: string, error: string) => about(what, () => subject.expectError(sent, 400, error));
  await poll('the first poll', 'authorization_pending');
  await poll(`a poll within ${intervalSeconds} s of the last one; ${SLOW_DOWN}`, 'slow_down');
  wait();
  await poll('a poll after the interval', 'authorization_pending');
  if (createdCustomers(subject) > before) throw new Error(`a customer exists before the confirmation; ${CREATE_LATER}`);
  await confirm();
  wait();
  await about('a poll after the confirmation', () => subject.expectSuccess(sent));
  for (const what of ['a second use', 'a third use']) {
    wait();
    await poll(what, 'invalid_grant');
  }
}

/** The number of customers that requests created, without those of other grants, such as the person who confirms. */
function createdCustomers({ declared, service }: GrantSubject): number {
  const isOwn = (grant = declared.name) => grant === declared.name;
  return service.audit.filter(
    ({ event, requestId, grant }) => event === 'identity.created' && requestId !== undefined && isOwn(grant),
  ).length;
}
