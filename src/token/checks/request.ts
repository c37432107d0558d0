import { readBody } from '../../oauth/body-reader.js';
import { isForm, parseForm } from '../../oauth/form.js';
import { parseJsonObject } from '../../oauth/json-object.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/** Reads the body. It is JSON, or a form (RFC 6749 §4.1.3) if the requested grant declares `form`. */
export async function readTokenParameters(request: TokenRequest, { grants }: TokenServices): Promise<void> {
  const { http, route } = request;
  const text = await readBody(http);
  const isFormBody = isForm(text, http.headers['content-type']);
  if (isFormBody && !grants.readsForms(new URLSearchParams(text).get('grant_type'))) throw OAuthError.invalidMessage();
  const parameters = isFormBody ? parseForm(text) : parseJsonObject(text);
  request.parameters = route.grantType === undefined ? parameters : { ...parameters, grant_type: route.grantType };
}

/** Finds the grant with the requested `grant_type`. */
export function findGrant(request: TokenRequest, { grants }: TokenServices): void {
  request.grant = grants.named(request.parameters.grant_type);
  requestContext.set({ grant: request.grant.name });
}

/** Validates the parameters by the body class of the grant. Undeclared parameters are ignored (RFC 6749 §3.2). */
export function validateBody(request: TokenRequest): void {
  request.body = readParameters(request.grant.body, request.parameters);
}
