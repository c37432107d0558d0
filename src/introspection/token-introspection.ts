import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsBoolean, IsIn, IsInt, IsString, ValidateNested } from 'class-validator';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import { INACTIVE_REASONS, type InactiveReason } from '../access-token/inactive-reason.js';
import { TokenInspection } from '../access-token/token-inspection.js';
import { Actor, type Audience } from '../access-token/token-lineage.js';
import { Optional } from '../oauth/parameters.js';
import { requestContext } from '../platform/request-context/request-context.js';

/** The response about a token (RFC 7662 §2.2). Of an inactive token, only the operator learns anything more. */
export class IntrospectionResponse implements Partial<AccessTokenClaims> {
  @IsBoolean()
  active: boolean;

  @Optional()
  @IsIn(['Bearer'])
  token_type?: 'Bearer';

  @Optional()
  @IsString()
  iss?: string;

  @Optional()
  @IsString()
  sub?: string;

  @Optional()
  @IsIn(['customer-api', 'agent-api'])
  aud?: Audience;

  @Optional()
  @IsString()
  client_id?: string;

  @Optional()
  @IsString()
  organization_id?: string;

  @Optional()
  @IsInt()
  iat?: number;

  @Optional()
  @IsInt()
  exp?: number;

  @Optional()
  @IsString()
  jti?: string;

  /** Only in agent tokens: the granted scopes, separated by spaces. */
  @Optional()
  @IsString()
  scope?: string;

  /** Only in customer tokens: the name of the grant. */
  @Optional()
  @IsString()
  gty?: string;

  /** Only in tokens of a customer of a group. */
  @Optional()
  @IsString()
  group_id?: string;

  /** The agent that obtained a customer's token (RFC 8693 §4.1). */
  @Optional()
  @ValidateNested()
  @Type(() => Actor)
  act?: Actor;

  /** The ids of the tokens that this token descends from. The token ends when one of them is revoked. */
  @Optional()
  @IsString({ each: true })
  ancestors?: string[];

  /** The generation of the customer or agent when access was granted. */
  @Optional()
  @IsInt()
  gen?: number;

  /** The number of identity transfers that led to the token. */
  @Optional()
  @IsInt()
  transfers?: number;

  /** Only for the operator, if the token is inactive: the reason. */
  @Optional()
  @IsIn(Object.keys(INACTIVE_REASONS))
  inactive_reason?: InactiveReason;
}

/** Reports to a resource server or the operator whether a token is active (RFC 7662). */
@Injectable()
export class TokenIntrospection {
  constructor(private readonly tokens: TokenInspection) {}

  /**
   * Reports a token as inactive if it is invalid, has ended or is for another audience. The log line of the request
   * gets the reason.
   *
   * @param audiences the audiences whose tokens the resource server may introspect; `undefined` means the operator, who
   * may introspect all tokens and learns the reason
   */
  async introspect(token: string, audiences: string[] | undefined): Promise<IntrospectionResponse> {
    const { claims, inactiveReason } = await this.tokens.inspect(token, audiences);
    if (!inactiveReason) return { active: true, token_type: 'Bearer', ...claims };
    const response = inactive(inactiveReason);
    return audiences === undefined ? { ...response, inactive_reason: inactiveReason } : response;
  }
}

function inactive(reason: InactiveReason): IntrospectionResponse {
  requestContext.set({ reason });
  return { active: false };
}
