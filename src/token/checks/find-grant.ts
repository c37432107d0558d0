import { requestContext } from '../../platform/request-context/request-context.js';
import type { TokenRequest } from '../token-request.js';
import type { TokenServices } from '../token-services.js';

/** Finds the grant that `grant_type` names. */
export function findGrant(request: TokenRequest, { grants }: TokenServices): void {
  request.grant = grants.named(request.parameters.grant_type);
  requestContext.set({ grant: request.grant.name });
}
