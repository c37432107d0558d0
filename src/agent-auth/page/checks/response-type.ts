import type { AuthorizationParameters } from '../authorization-query.js';

/** Each type of client may use one response type only. */
export function responseTypeViolation(parameters: AuthorizationParameters): string | undefined {
  const responseType = parameters.value('response_type');
  const expected = parameters.expectedResponseType;
  if (responseType === undefined) return 'response_type: required';
  return responseType === expected ? undefined : `response_type: must be ${expected} for this type of client`;
}
