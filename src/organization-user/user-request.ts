import type { Customer } from '../identity/customer.js';
import type { CustomerCreator } from '../identity/customer-creation.js';

/** A request for the customer of a user of an organization. */
export interface UserRequest {
  organizationId: string;
  /** The organization's id of the user, byte for byte. */
  userId: string;
  /** The customer of the identity cookies, if the request asks to link it. */
  browserCustomerId?: string | undefined;
  /** Identifies the request, so that it recognizes its own write after a lost response of the database. */
  attempt: string;
  /** The creator of the customer in the audit event. */
  creator: CustomerCreator;
}

/** The customer of a user. */
export interface UserCustomer extends Customer {
  /** Whether this request created the user. Of parallel requests one did. */
  created: boolean;
}
