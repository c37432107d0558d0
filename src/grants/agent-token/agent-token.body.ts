import { IsBoolean, IsIn, IsString, Matches } from 'class-validator';
import { IsIdText } from '../../oauth/id-text.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Optional } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-property.js';
import { UUID } from '../../platform/uuid.js';
import { GrantBody } from '../../token/grant.js';
import type { GrantDescription } from '../../token/grant-description.js';

/** The parameters of protocol §4.3 and §4.6. */
export class AgentTokenBody extends GrantBody {
  @IsIn(['token'])
  @ApiProperty('Always `token`.', 'token')
  response_type: 'token';

  @Optional()
  @Matches(UUID, { message: 'must be a UUID in lower case' })
  @ApiProperty(
    'The customer that gets a new token. Without it and `external_id`, the request creates a customer.',
    EXAMPLE.entityId,
  )
  entity_id?: string;

  @Optional()
  @IsString()
  @IsIdText()
  @ApiProperty(
    "The organization's own id of a user. The request finds the customer with this id, or creates it.",
    EXAMPLE.externalId,
  )
  external_id?: string;

  @Optional()
  @Matches(UUID, { message: 'must be a UUID in lower case' })
  override organization_id?: string;

  @Optional()
  @IsString()
  override redirect_uri?: string;
}

/** The response field that only requests with `external_id` have. */
class AgentTokenFields {
  @Optional()
  @IsBoolean()
  @ApiProperty('Only with `external_id`: whether the request created the customer.', true)
  created?: boolean;
}

export const AGENT_TOKEN_DESCRIPTION: GrantDescription = {
  description:
    'A backend gets a token for a customer of its organization, or creates a customer. It sends the access token of an agent with the scope `customers:own` as bearer token.',
  examples: {
    'a new customer': [],
    'a known user of the organization': ['external_id'],
    'a new token for a customer': ['entity_id'],
  },
  response: AgentTokenFields,
  errors: () => [
    OAuthError.invalidRequest('entity_id: unknown'),
    OAuthError.invalidRequest('external_id: must not be sent with entity_id'),
  ],
};
