import { IsString, MaxLength } from 'class-validator';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-property.js';
import { GrantBody } from '../../token/grant.js';
import type { GrantDescription } from '../../token/grant-description.js';

/** The parameters of protocol §4.8. */
export class RefreshTokenBody extends GrantBody {
  @IsString()
  @MaxLength(1024)
  @ApiProperty('The refresh token of the last response.', EXAMPLE.refreshToken)
  refresh_token: string;
}

export const REFRESH_TOKEN_DESCRIPTION: GrantDescription = {
  description:
    'A client exchanges the refresh token of a customer for a new access token and the next refresh token. Store the new refresh token before you use it.',
  errors: () => [OAuthError.invalidGrant('example')],
};
