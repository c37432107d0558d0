import { bearerToken, type HeadersOfRequest } from './bearer.js';
import type { VerifiedClaims } from './claims.js';
import type { TokenVerifier } from './token-verifier.js';

/** What the middleware uses of a request. */
export interface AuthorizedRequest extends Pick<HeadersOfRequest, 'headers' | 'rawHeaders'> {
  /** The claims of the token, after the middleware. */
  auth?: VerifiedClaims;
}

/** Express middleware: sets `request.auth`, or passes a TokenVerifierError to the error handler of the application. */
export function requireToken(verifier: Pick<TokenVerifier, 'verify'>) {
  return async (request: AuthorizedRequest, _response: unknown, next: (error?: unknown) => void): Promise<void> => {
    try {
      request.auth = await verifier.verify(bearerToken(request));
    } catch (error) {
      return next(error);
    }
    next();
  };
}
