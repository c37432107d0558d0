import { IsIn, IsString, Matches, MaxLength } from 'class-validator';
import { GrantBody, Optional, UUID } from '../../public/grant.js';

/** The parameters of RFC 7523 §2.1, and the organization of the user. */
export class JwtBearerBody extends GrantBody {
  /** A JWT that the organization's sign-in system has signed. */
  @IsString()
  @MaxLength(8192)
  assertion: string;

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id: string;

  /**
   * `browser`: a new user gets the customer of the identity cookies. A known user keeps their own customer, and the
   * browser's customer is linked to it. A customer of another user is never linked (`OrganizationUsers.customerOf`).
   */
  @Optional()
  @IsIn(['browser'])
  link?: 'browser';
}
