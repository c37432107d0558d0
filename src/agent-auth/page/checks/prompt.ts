import type { AuthorizationParameters } from '../authorization-query.js';

const PROMPTS = ['none', 'login', 'consent'];

/** `prompt` as in OpenID Connect Core 1.0 §3.1.2.1: `none` excludes every other value. */
export function promptViolation({ prompts }: AuthorizationParameters): string | undefined {
  if (!prompts.every((each) => PROMPTS.includes(each))) return `prompt: must be a list of ${PROMPTS.join(', ')}`;
  return prompts.includes('none') && prompts.length > 1 ? 'prompt: none excludes other values' : undefined;
}
