import { about } from '../cases.js';
import type { GrantKit } from '../grant-kit.js';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { undeclared } from '../test-context.js';

/** RFC 8628 §3.5: after `slow_down` the client waits this much longer between its polls. */
const SLOW_DOWN_SECONDS = 5;
const SLOW_DOWN = 'store the time of the last poll, and throw OAuthError.slowDown() for a poll within the interval';
const CREATE_LATER = 'create the customer when the grant redeems the confirmed proof';

type Pending = NonNullable<GrantKit['pending']>;

/** A grant that is polled until a person confirms its proof (RFC 8628 §3.5). */
export const pendingRules: RuleSet = ({ polling }, { pending }) => {
  if (!polling) return [];
  return pending ? [POLLED] : [DECLARES_PENDING];
};

const DECLARES_PENDING = undeclared(
  'has a test that declares `pending`, because the grant declares `polling`',
  'pending: return { parameters, confirm, intervalSeconds } of an unconfirmed proof',
);

const POLLED: Rule = {
  title: 'answers polls by RFC 8628, and gives one token to one customer after the confirmation',
  check(context) {
    const { clock } = context.environment.service;
    return clock.whileStopped(() => pollUntilUsed(context));
  },
};

async function pollUntilUsed(context: GrantTestContext): Promise<void> {
  const { environment, kit } = context;
  const before = createdCustomers(context);
  const { parameters: own, confirm, intervalSeconds } = await (kit.pending as Pending)(environment);
  const parameters = context.withCommon(own);
  const wait = () => environment.service.clock.advance({ seconds: intervalSeconds + SLOW_DOWN_SECONDS });
  const poll = (what: string, error: string) => about(what, () => context.expectError({ error }, parameters));
  await poll('the first poll', 'authorization_pending');
  await poll(`a poll within ${intervalSeconds} s of the last one; ${SLOW_DOWN}`, 'slow_down');
  wait();
  await poll('a poll after the interval', 'authorization_pending');
  if (createdCustomers(context) > before) throw new Error(`a customer exists before the confirmation; ${CREATE_LATER}`);
  await confirm();
  wait();
  await about('a poll after the confirmation', () => context.expectToken(parameters));
  for (const what of ['a second use', 'a third use']) {
    wait();
    await poll(what, 'invalid_grant');
  }
}

/** The number of customers that requests created, without those of other grants, such as the person who confirms. */
function createdCustomers({ declared, environment: { service } }: GrantTestContext): number {
  const isOwn = (grant = declared.name) => grant === declared.name;
  return service.audit.filter(
    ({ event, requestId, grant }) => event === 'identity.created' && requestId !== undefined && isOwn(grant),
  ).length;
}
