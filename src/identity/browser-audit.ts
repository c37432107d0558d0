import type { Customer } from '../customer/customer.js';
import { type Audit, party } from '../platform/audit/audit.js';

/** @param cause what led the browser to the customer: the id of the session of a redemption or of a sign-in */
export function auditBrowserLinked(
  audit: Audit,
  browserId: string,
  { entityId, organizationId }: Pick<Customer, 'entityId' | 'organizationId'>,
  cause: { redemption: string } | { sign_in: string },
): void {
  const details = { browser: browserId, ...cause };
  audit.success('browser.linked', party('customer'), party('customer', entityId), { organizationId, details });
}
