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
  assertion!: string;

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id!: string;

  @Optional()
  @IsIn(['browser'])
  @ApiProperty(
    '`browser` signs the browser in: the response sets cookies with which the grant `cookie` leads to the customer of the user. Needs an `Origin`, and a client that may use it.',
    'browser',
  )
  remember?: 'browser';

  /** A customer of another user is never given or linked (`OrganizationUsers.customerOf`). */
  @Optional()
  @IsIn(['browser'])
  @ApiProperty(
    'Only with `remember=browser`: `browser` gives the customer that the browser created itself to a new user, or links it to a known user. Needs an organization that allows it.',
    'browser',
  )
  link?: 'browser';
}

export const JWT_BEARER_DESCRIPTION: GrantDescription = {
  description:
    "A user of an organization's own sign-in system gets a token (RFC 7523). `sub` of the assertion names the user, who has one customer on every device. The body may be a form.",
  examples: {
    'a user': [],
    'sign the browser in': ['remember'],
    'sign in, and keep the customer that a new user has in this browser': ['remember', 'link'],
  },
  errors: () => [
    OAuthError.invalidGrant('example'),
    OAuthError.unauthorizedClient('grant_type: not for this organization'),
    OAuthError.unauthorizedClient('remember: browser is not for this client'),
    OAuthError.unauthorizedClient('link: not for this organization'),
    OAuthError.invalidRequest('remember: needs an Origin'),
    OAuthError.invalidRequest('link: only with remember=browser'),
  ],
};
