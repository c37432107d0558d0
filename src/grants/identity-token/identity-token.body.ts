import { IsBoolean, IsIn, IsString, MaxLength } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';
import { GrantBody } from '../../token/grant.js';
import type { RememberKind } from './identity-token.settings.js';

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

  /** `browser`: the browser that sends the request leads to the customer from now on. */
  @Optional()
  @IsIn(['browser'], { message: 'must be browser' })
  remember?: RememberKind;

  /** Whether the customer replaces another customer that the browser has in the same organization and group. */
  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  replace?: boolean;
}
