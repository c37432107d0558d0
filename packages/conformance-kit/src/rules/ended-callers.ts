import { endBearers, STORE_DESCENT } from '../ended-bearers.js';
import { createProof } from '../proof.js';
import type { Rule, RuleSet } from '../rule.js';

/** A proof ends with the token of the caller that created it (protocol §10.7). */
export const endedCallerRules: RuleSet = (_declared, { endsWithCaller = true }) =>
  endsWithCaller ? [ENDS_WITH_CALLER] : [];

const ENDS_WITH_CALLER: Rule = {
  title: 'gives no token after the bearer token that created the proof has ended',
  async check(context) {
    const { parameters, bearers } = await createProof(context);
    if ((await endBearers(context.environment.service, bearers)) === 0) return;
    const { status, text, body } = await context.send(parameters);
    if (status === 400 && body.error === 'invalid_grant') return;
    const optOut =
      'if the bearer token in `valid` does not create the proof, declare `endsWithCaller: false` in the test';
    throw new Error(`not refused with invalid_grant; ${STORE_DESCENT}; ${optOut}\nresponse: ${status} ${text}`);
  },
};
