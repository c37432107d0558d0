import { readParameters } from '../../oauth/parameters.js';
import type { TokenRequest } from '../token-request.js';

/** Validates the parameters by the body class of the grant. Undeclared parameters are ignored (RFC 6749 §3.2). */
export function validateBody(request: TokenRequest): void {
  request.body = readParameters(request.grant.body, request.parameters);
}
