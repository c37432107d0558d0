import { endBearers, STORE_DESCENT } from '../ended-bearers.js';
import { createProof } from '../proof.js';
import type { Rule, RuleSet } from '../rule.js';

/** A proof ends with the token of the caller that created it (protocol §10.7). */
export const endedCallerRules: RuleSet = (_declared, { endsWithCaller = true }) =>
  endsWithCaller ? [ENDS_WITH_CALLER] : [];

const OPT_OUT = 'if no bearer token in `valid` creates the proof, declare `endsWithCaller: false` in the test';

const ENDS_WITH_CALLER: Rule = {
  title: 'gives no token after the bearer token that created the proof has ended',
  async check(context) {
    const { parameters, bearers } = await createProof(context);
    if ((await endBearers(context.environment.service, bearers)) === 0)
      throw new Error(`\`valid\` sends no bearer token to the service; ${OPT_OUT}`);
    const { status, text, body } = await context.send(parameters);
    if (status === 400 && body.error === 'invalid_grant') return;
    throw new Error(`not refused with invalid_grant; ${STORE_DESCENT}; ${OPT_OUT}\nresponse: ${status} ${text}`);
  },
};
