import { IsIn, IsString, Matches, MaxLength } from 'class-validator';
import { ApiProperty, GrantBody, type GrantDescription, OAuthError, Optional, UUID } from '../../public/grant.js';

/** The parameters of RFC 7523 §2.1, and the organization of the user. */
export class JwtBearerBody extends GrantBody {
  @IsString()
  @MaxLength(8192)
  @ApiProperty(
    "A JWT that the organization's sign-in system has signed, with `iss`, `sub`, `aud`, `exp` and `jti`. It can be used once, for at most 600 s.",
    'HEADER.CLAIMS.SIGNATURE',
  )
  assertion: string;

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id: string;

  /**
   * `browser`: a new user gets the customer of the identity cookies. A known user keeps their own customer, and the
   * browser's customer is linked to it. A customer of another user is never linked (`OrganizationUsers.customerOf`).
   */
  @Optional()
  @IsIn(['browser'])
  @ApiProperty(
    '`browser` gives the customer of the identity cookies to a new user, or links it to a known user. Needs an `Origin`, and an organization that allows it.',
    'browser',
  )
  link?: 'browser';
}

export const JWT_BEARER_DESCRIPTION: GrantDescription = {
  description:
    "A user of an organization's own sign-in system gets a token (RFC 7523). `sub` of the assertion names the user, who has one customer on every device. The body may be a form.",
  examples: { 'a user': [], 'a user whose browser already has a customer': ['link'] },
  errors: () => [
    OAuthError.invalidGrant('example'),
    OAuthError.unauthorizedClient('grant_type: not for this organization'),
    OAuthError.unauthorizedClient('link: not for this organization'),
    OAuthError.invalidRequest('link: requires the header Origin'),
  ],
};
