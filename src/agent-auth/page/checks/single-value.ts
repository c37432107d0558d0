import { OAuthError } from '../../../oauth/oauth-error.js';
import { type AuthorizationParameters, PARAMETER_NAMES } from '../authorization-query.js';

/** @throws OAuthError `invalid_request` if the parameter is missing or repeated */
export function singleValue(parameters: AuthorizationParameters, name: string): string {
  const [value, ...more] = parameters.values(name);
  if (value === undefined || value === '') throw OAuthError.invalidRequest(`${name}: required`);
  if (more.length > 0) throw OAuthError.invalidRequest(`${name}: given more than once`);
  return value;
}

/** No parameter may be repeated (RFC 6749 §3.1). */
export function repeatedParameter(parameters: AuthorizationParameters): string | undefined {
  const repeated = PARAMETER_NAMES.find((name) => parameters.values(name).length > 1);
  return repeated && `${repeated}: given more than once`;
}
