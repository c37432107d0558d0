import { IsIn, IsString, Matches } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';
import { ApiProperty } from '../../platform/http/api-property.js';
import { UUID } from '../../platform/uuid.js';
import { GrantBody } from '../../token/grant.js';
import type { GrantDescription } from '../../token/grant-description.js';

/** The parameters of protocol §4.1. On the path of a group (protocol §4.2) `organization_id` may be omitted. */
export class CookieBody extends GrantBody {
  @IsIn(['token'])
  @ApiProperty('Always `token`.', 'token')
  response_type: 'token';

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id: string;

  @Optional()
  @IsString()
  override redirect_uri?: string;
}

export const COOKIE_DESCRIPTION: GrantDescription = {
  description:
    'A page gets a token for the customer of its browser. Two cookies recognise the browser. A browser without them gets a new customer. Send the request with credentials.',
};
