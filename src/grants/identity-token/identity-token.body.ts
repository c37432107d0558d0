import { IsString, MaxLength } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';
import { GrantBody } from '../../token/grant.js';

/** The parameters of protocol §4.5. */
export class IdentityTokenBody extends GrantBody {
  /** The transfer token. */
  @IsString()
  @MaxLength(1024)
  code: string;

  /** Required if the transfer token was created with a `code_challenge`, and rejected otherwise. */
  @Optional()
  @IsString()
  code_verifier?: string;
}
