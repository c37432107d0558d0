import { ACME, ACME_SITE } from './registry.js';

export const TOKEN = '/v2/customer/token';

/** The parameters of a cookie grant (specification 4.1). */
export function cookieBody(more: object = {}): object {
  return { grant_type: 'cookie', client_id: ACME_SITE, response_type: 'token', organization_id: ACME, ...more };
}
