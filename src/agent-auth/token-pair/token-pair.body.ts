import { IsIn, IsString, MaxLength } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';

/** How a client says who it is, unless by `Authorization: Basic` (RFC 6749 section 2.3.1). */
class ClientParameters {
  @Optional()
  @IsString()
  client_id?: string;

  @Optional()
  @IsString()
  client_secret?: string;
}

/** RFC 6749 section 4.1.3 and RFC 7636 section 4.5. */
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

/** RFC 6749 section 6. */
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
