import { CODE_CHALLENGE } from '../../../one-time-code/pkce.js';
import type { AuthorizationParameters } from '../authorization-query.js';

/** PKCE with S256 (RFC 7636). A native application must use it (RFC 8252 §8.1). */
export function pkceViolation(parameters: AuthorizationParameters): string | undefined {
  const challenge = parameters.value('code_challenge');
  const method = parameters.value('code_challenge_method');
  if (challenge === undefined) {
    if (method !== undefined) return 'code_challenge: required with code_challenge_method';
    const isNative = parameters.client.clientType === 'native';
    return isNative ? 'code_challenge: required for a native application' : undefined;
  }
  if (!CODE_CHALLENGE.test(challenge)) return 'code_challenge: must be 43 characters of base64url';
  if (method !== 'S256') return 'code_challenge_method: must be S256';
  return parameters.expectedResponseType === 'token' ? 'code_challenge: only with response_type=code' : undefined;
}
