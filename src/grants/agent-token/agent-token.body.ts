import { IsIn, IsString, Matches } from 'class-validator';
import { IsIdText } from '../../oauth/id-text.js';
import { Optional } from '../../oauth/parameters.js';
import { UUID } from '../../platform/uuid.js';
import { GrantBody } from '../../token/grant.js';

/** The parameters of protocol §4.3 and §4.6. */
export class AgentTokenBody extends GrantBody {
  @IsIn(['token'])
  response_type: 'token';

  /** The customer whom the token is for. If omitted, the grant creates a customer. */
  @Optional()
  @Matches(UUID, { message: 'must be a UUID in lower case' })
  entity_id?: string;

  /** The organization's own id of the user. The grant finds the customer with this id, or creates it. */
  @Optional()
  @IsString()
  @IsIdText()
  external_id?: string;

  @Optional()
  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id?: string;

  @Optional()
  @IsString()
  override redirect_uri?: string;
}
