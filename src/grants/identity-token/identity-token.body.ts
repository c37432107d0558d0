import { IsBoolean, IsIn, IsString, MaxLength } from 'class-validator';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Optional } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-property.js';
import { GrantBody } from '../../token/grant.js';
import type { GrantDescription } from '../../token/grant-description.js';
import { REMEMBER_KINDS, type RememberKind } from './identity-token.settings.js';

/** The parameters of protocol §4.5. */
export class IdentityTokenBody extends GrantBody {
  @IsString()
  @MaxLength(1024)
  @ApiProperty('The transfer token that the first device created.', EXAMPLE.transferToken)
  code: string;

  @Optional()
  @IsString()
  @ApiProperty(
    'Required if the transfer token was created with a `code_challenge`, and rejected otherwise (RFC 7636).',
    EXAMPLE.codeVerifier,
  )
  code_verifier?: string;

  @Optional()
  @IsIn(REMEMBER_KINDS, { message: `must be one of ${REMEMBER_KINDS.join(', ')}` })
  @ApiProperty(
    'How the customer stays on this device. `browser` sets cookies for the grant `cookie`. `refresh_token` adds a refresh token to the response. Both need a `code_challenge` and a client that may use them.',
    'browser',
  )
  remember?: RememberKind;

  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  @ApiProperty(
    'Only with `remember=browser`: `true` replaces another customer that the browser has in this organization and group. Ask the user first.',
    true,
  )
  replace?: boolean;
}

export const IDENTITY_TOKEN_DESCRIPTION: GrantDescription = {
  description:
    'A second device redeems a transfer token and gets an access token for the same customer. A transfer token can be redeemed once.',
  examples: {
    'for one token lifetime': [],
    'with a code challenge': ['code_verifier'],
    'and stay in this browser': ['code_verifier', 'remember'],
  },
  errors: () => [
    OAuthError.invalidGrant('example'),
    OAuthError.invalidRequest('replace: only with remember=browser'),
    OAuthError.invalidRequest('remember: needs an Origin'),
    OAuthError.invalidRequest('remember: needs a code that was created with a code_challenge'),
    OAuthError.unauthorizedClient('remember: browser is not for this client'),
    OAuthError.unauthorizedClient('remember: the client does not list the grant refresh_token'),
    OAuthError.identityConflict(),
  ],
};
