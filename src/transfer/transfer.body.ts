import { IsIn, Matches } from 'class-validator';
import { CODE_CHALLENGE } from '../oauth/pkce.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { IsUuid } from '../platform/validation/text-rules.js';
import { ApiString, Optional } from '../platform/validation/validation.js';

/** The parameters of an identity transfer (protocol §4.4). */
export class TransferBody {
  @IsIn(['agent', 'customer'], { message: 'must be agent or customer' })
  @ApiProperty('The kind of the bearer token. A bearer token of the other kind gets 401.', 'customer')
  bearer_type!: 'agent' | 'customer';

  @ApiString('The client that may redeem the transfer token.', EXAMPLE.clientId)
  client_id!: string;

  @Optional()
  @IsUuid()
  @ApiProperty(
    'The customer to transfer. Required for an agent. A customer may omit it or send its own id.',
    EXAMPLE.entityId,
  )
  customer_id?: string;

  @Optional()
  @Matches(CODE_CHALLENGE, { message: 'must be 43 characters of base64url' })
  @ApiProperty(
    'The SHA-256 of a `code_verifier` that only the second device knows, in base64url (RFC 7636).',
    EXAMPLE.codeChallenge,
  )
  code_challenge?: string;

  @Optional()
  @IsIn(['S256'], { message: 'must be S256' })
  @ApiProperty('The only method. May be omitted.', 'S256')
  code_challenge_method?: 'S256';
}
