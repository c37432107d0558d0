import type { AuthorizationParameters } from '../authorization-query.js';

/** RFC 6749 appendix A.5. */
const VISIBLE_CHARACTERS = /^[\x20-\x7e]*$/;
const MAX_STATE_CHARACTERS = 1000;

export function stateViolation(parameters: AuthorizationParameters): string | undefined {
  const state = parameters.value('state') ?? '';
  const isValid = state.length <= MAX_STATE_CHARACTERS && VISIBLE_CHARACTERS.test(state);
  return isValid ? undefined : `state: must be at most ${MAX_STATE_CHARACTERS} visible characters`;
}
