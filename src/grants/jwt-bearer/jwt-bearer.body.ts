import { IsIn, IsString, Matches, MaxLength } from 'class-validator';
import { GrantBody, Optional, UUID } from '../../public/grant.js';

/** The parameters of RFC 7523 section 2.1, and whose user the assertion is about. */
export class JwtBearerBody extends GrantBody {
  /** A JWT that the organization's own sign-in system has signed. */
  @IsString()
  @MaxLength(8192)
  assertion: string;

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id: string;

  /** `browser`: the customer whom the browser's cookies show is this user, too. */
  @Optional()
  @IsIn(['browser'])
  link?: 'browser';
}
