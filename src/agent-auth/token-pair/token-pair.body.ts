import { IsIn, IsString, MaxLength } from 'class-validator';
import { ClientParameters } from '../../oauth/client-parameters.js';
import { Optional } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-property.js';

/** The access token request (RFC 6749 §4.1.3, RFC 7636 §4.5). */
export class CodeExchangeBody extends ClientParameters {
  @IsIn(['authorization_code'])
  @ApiProperty('Exchanges the authorization code of the authorization page.', 'authorization_code')
  grant_type!: 'authorization_code';

  @IsString()
  @MaxLength(1024)
  @ApiProperty('The `code` of the redirect. It can be redeemed once.', EXAMPLE.authorizationCode)
  code!: string;

  @IsString()
  @MaxLength(2000)
  @ApiProperty('The `redirect_uri` of the authorization request.', EXAMPLE.redirectUri)
  redirect_uri!: string;

  @Optional()
  @IsString()
  @ApiProperty(
    'Required if the authorization request had a `code_challenge`, and rejected otherwise (RFC 7636).',
    EXAMPLE.codeVerifier,
  )
  code_verifier?: string;
}

/** The refresh request (RFC 6749 §6). */
export class RefreshBody extends ClientParameters {
  @IsIn(['refresh_token'])
  @ApiProperty('Exchanges the refresh token of the last response.', 'refresh_token')
  grant_type!: 'refresh_token';

  @IsString()
  @MaxLength(1024)
  @ApiProperty('The refresh token of the last response.', EXAMPLE.refreshToken)
  refresh_token!: string;

  @Optional()
  @IsString()
  @MaxLength(1000)
  @ApiProperty('Fewer scopes than were granted, for this access token only. Separated by spaces.', EXAMPLE.scope)
  scope?: string;
}
