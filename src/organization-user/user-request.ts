import type { Customer, CustomerCreator } from '../identity/customer.js';
import type { BrowserCredentials, CandidateCredentials } from '../identity/identity-cookies.js';

/** The browser that signs a user in (protocol §5.6). */
export interface UserSignIn {
  /** The identity cookies of the request. */
  credentials: CandidateCredentials | undefined;
  /** Whether the customer that the browser created itself becomes a new user's, or is linked to a known user. */
  link: boolean;
}

/** A request for the customer of a user of an organization. */
export interface UserRequest {
  organizationId: string;
  /** The organization's id of the user, byte for byte. */
  userId: string;
  /** Only if the browser is to lead to the customer. The limit of new customers then does not count. */
  signIn?: UserSignIn | undefined;
  /** Identifies the request, so that it recognizes its own write after a lost response of the database. */
  attempt: string;
  /** The creator of the customer in the audit event. */
  creator: CustomerCreator;
}

/** The customer of a user. */
export interface UserCustomer extends Customer {
  /** Whether this request created the user. Of parallel requests one did. */
  created: boolean;
  /** The values of the identity cookies after a sign-in. */
  credentials?: BrowserCredentials;
}
