import { IsBoolean } from 'class-validator';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import { INACTIVE_REASONS, type InactiveReason } from '../access-token/inactive-reason.js';
import { Actor, type Audience } from '../access-token/token-lineage.js';
import { OneOf, Optional, OptionalInteger, OptionalText, Texts } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { Nested } from '../platform/validation.js';

/** The response about a token (RFC 7662 §2.2). Of an inactive token, only the operator learns the reason. */
export class IntrospectionResponse implements Partial<AccessTokenClaims> {
  @IsBoolean()
  @ApiProperty('Whether the token is valid now. If `false`, all claims are absent.', true)
  active!: boolean;

  @Optional()
  @OneOf(['Bearer'], 'How to send the access token (RFC 6750).')
  token_type?: 'Bearer';

  @OptionalText('The issuer: this service, or a trusted issuer.', 'https://auth.example')
  iss?: string;

  @OptionalText('The id of the customer or agent.', EXAMPLE.entityId)
  sub?: string;

  @Optional()
  @OneOf(
    ['customer-api', 'agent-api'],
    'The API that the token is for. It distinguishes tokens of customers and agents.',
  )
  aud?: Audience;

  @OptionalText('The client that the token was issued for.', EXAMPLE.clientId)
  client_id?: string;

  @OptionalText('The organization of the customer or agent.', EXAMPLE.organizationId)
  organization_id?: string;

  @OptionalInteger('When the token was issued, in seconds since 1970.', EXAMPLE.seconds)
  iat?: number;

  @OptionalInteger('When the token expires, in seconds since 1970.', EXAMPLE.seconds + 28_800)
  exp?: number;

  @OptionalText('The id of the token.', EXAMPLE.tokenId)
  jti?: string;

  @OptionalText('Only in agent tokens: the granted scopes, separated by spaces.', EXAMPLE.scope)
  scope?: string;

  @OptionalText('Only in customer tokens: the grant that issued the token.', 'cookie')
  gty?: string;

  @OptionalText('Only in tokens of a customer of a group.', EXAMPLE.groupId)
  group_id?: string;

  @Optional()
  @Nested(() => Actor)
  @ApiProperty('Only in customer tokens that an agent obtained: the agent (RFC 8693 §4.1).')
  act?: Actor;

  @Optional()
  @Texts('The ids of the tokens that the token descends from. It ends when one of them is revoked.', [EXAMPLE.familyId])
  ancestors?: string[];

  @OptionalInteger(
    'The generation of the customer or agent. The token has ended if the customer or agent has a higher one.',
    0,
  )
  gen?: number;

  @OptionalInteger('The number of identity transfers that led to the token.', 1)
  transfers?: number;

  @Optional()
  @OneOf(Object.keys(INACTIVE_REASONS), 'Only for the operator, if the token is inactive: the reason.', 'expired')
  inactive_reason?: InactiveReason;

  @OptionalText('Only if a part of a token was sent: what to send instead.', 'token: replace %3A by a colon')
  error_hint?: string;
}
