import type { GrantTestContext } from '../grant-test-context.js';
import { createProof, type Proof } from '../proof.js';
import type { RuleSet } from '../rule.js';
import { isPrivateText, secretsIn } from '../secret-search.js';
import { assertNoSecretIn } from './secrets.js';

/** The secrets of a proof are not disclosed while the service creates it. */
export const proofOutputRules: RuleSet = () => [
  {
    title: 'discloses no secret on stdout, on stderr, in the log, the audit or the metrics while a proof is created',
    async check(context) {
      const [one, other] = [await createProof(context), await createProof(context)];
      await assertNoSecretIn(context, new Set([...secretsOf(context, one, other), ...secretsOf(context, other, one)]));
    },
  },
];

/**
 * The texts of the request, and those of the service's responses. A text that another proof has too is no secret of
 * this proof. An id in a response may be public.
 */
function secretsOf({ declared, environment }: GrantTestContext, proof: Proof, other: Proof): string[] {
  const { isPublicId } = environment;
  const known = new Set([...other.responses, ...secretsIn(declared.body, other.parameters, isPublicId)]);
  const texts = [...secretsIn(declared.body, proof.parameters, isPublicId), ...proof.responses.filter(isPrivateText)];
  return texts.filter((text) => !known.has(text));
}
