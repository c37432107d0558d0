import { OAuthError } from './oauth-error.js';

/**
 * The errors that several routes can respond with. The checks throw them, and the OpenAPI document shows them, so that
 * each hint is written once.
 */
export const REQUEST_ERRORS = {
  clientUnknown: () => OAuthError.invalidRequest('client_id: unknown'),
  clientOutsideOrganization: () => OAuthError.invalidRequest('client_id: not usable in this organization'),
  foreignOrigin: () => OAuthError.invalidRequest("Origin: not one of the client's"),
  redirectUriUnknown: () =>
    OAuthError.invalidRequest("redirect_uri: not one of the client's; compare the trailing slash"),
  challengeRequired: () => OAuthError.invalidRequest('code_challenge: required with code_challenge_method'),
  pathEncoding: () => OAuthError.invalidRequest('path: invalid percent-encoding'),
  noJsonObject: () => OAuthError.invalidRequest('body: must be a JSON object'),
  organizationUnknown: () => OAuthError.invalidRequest('organization_id: unknown'),
  customerRequired: () => OAuthError.invalidRequest('customer_id: required'),
  customerUnknown: () => OAuthError.invalidRequest('customer_id: unknown'),
  customerOfOther: () => OAuthError.invalidRequest('customer_id: must be the customer of the bearer token'),
  secretTwice: () => OAuthError.invalidRequest('client_secret: given twice, also by Authorization'),
  secretOfOperator: () => OAuthError.invalidRequest('client_secret: given in addition to Authorization'),
  clientOfOtherHeader: () => OAuthError.invalidRequest('client_id: must equal the id in Authorization'),
};
