import { IsIn, IsString, MaxLength } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';

/** The credentials of a client that does not authenticate by `Authorization: Basic` (RFC 6749 §2.3.1). */
class ClientParameters {
  @Optional()
  @IsString()
  client_id?: string;

  @Optional()
  @IsString()
  client_secret?: string;
}

/** The access token request (RFC 6749 §4.1.3, RFC 7636 §4.5). */
export class CodeExchangeBody extends ClientParameters {
  @IsIn(['authorization_code'])
  grant_type: 'authorization_code';

  @IsString()
  @MaxLength(1024)
  code: string;

  @IsString()
  @MaxLength(2000)
  redirect_uri: string;

  @Optional()
  @IsString()
  code_verifier?: string;
}

/** The refresh request (RFC 6749 §6). */
export class RefreshBody extends ClientParameters {
  @IsIn(['refresh_token'])
  grant_type: 'refresh_token';

  @IsString()
  @MaxLength(1024)
  refresh_token: string;

  @Optional()
  @IsString()
  @MaxLength(1000)
  scope?: string;
}
