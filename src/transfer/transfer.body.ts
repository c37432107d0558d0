import { IsIn, IsString, Matches } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { CODE_CHALLENGE } from '../one-time-code/pkce.js';
import { UUID } from '../platform/uuid.js';

/** The parameters of an identity transfer (protocol §4.4). */
export class TransferBody {
  /** The kind of the bearer token. A bearer of the other kind is rejected. */
  @IsIn(['agent', 'customer'], { message: 'must be agent or customer' })
  bearer_type: 'agent' | 'customer';

  /** The client that may redeem the transfer token. */
  @IsString()
  client_id: string;

  /** Required for an agent. A customer may omit it or send its own id. */
  @Optional()
  @Matches(UUID, { message: 'must be a UUID in lower case' })
  customer_id?: string;

  @Optional()
  @Matches(CODE_CHALLENGE, { message: 'must be 43 characters of base64url' })
  code_challenge?: string;

  /** May be omitted, because S256 is the only method. */
  @Optional()
  @IsIn(['S256'], { message: 'must be S256' })
  code_challenge_method?: 'S256';
}
