import { IsString, MaxLength } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';

/** RFC 6749 section 4.1.3 and RFC 7636 section 4.5. */
export class CodeExchangeBody {
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
export class RefreshBody {
  @IsString()
  @MaxLength(1024)
  refresh_token: string;

  @Optional()
  @IsString()
  @MaxLength(1000)
  scope?: string;
}
