import { HttpCode, Post } from '@nestjs/common';
import { IsBoolean, MaxLength } from 'class-validator';
import type { Counter } from 'prom-client';
import type { AccessTokenClaims } from '../../access-token/access-tokens.js';
import { INACTIVE_REASONS, type InactiveReason } from '../../access-token/inactive-reason.js';
import { Actor, type Audience, USER_VERIFIED } from '../../access-token/session-claims.js';
import { CredentialParameters } from '../../http/callers/client-authentication.js';
import { ResourceServerGuard, SecretClientGuard } from '../../http/callers/secret.guards.js';
import { Caller, ValidatedBody } from '../../http/routes/parameter.decorators.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty, ApiRoute } from '../../platform/http/api-route.js';
import { ManagementController } from '../../platform/http/listener.decorators.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import {
  ApiEnum,
  ApiOptionalInteger,
  ApiOptionalString,
  ApiString,
  Nested,
  Optional,
} from '../../platform/validation/validation.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { ResourceServer } from '../../registry/resource-server.entity.js';
import { TokenInspection } from '../../session/token-validity.js';
import { TokenRevocation } from '../../token/token-revocation.js';

/** The parameters of introspection (RFC 7662 §2.1) and revocation (RFC 7009 §2.1). */
class TokenBody extends CredentialParameters {
  @ApiString('The access token, with its prefix. For revocation also a refresh token.', EXAMPLE.accessToken)
  @MaxLength(8192)
  token!: string;
}

/** The response about a token (RFC 7662 §2.2). Of an inactive token, only the operator learns the reason. */
class IntrospectionResponse implements Partial<AccessTokenClaims> {
  @IsBoolean()
  @ApiProperty('Whether the token is valid now. If `false`, all claims are absent.', true)
  active!: boolean;

  @Optional()
  @ApiEnum(['Bearer'], 'How to send the access token (RFC 6750).')
  token_type?: 'Bearer';

  @ApiOptionalString('The issuer: this service.', 'https://auth.example')
  iss?: string;

  @ApiOptionalString('The id of the customer or agent.', EXAMPLE.entityId)
  sub?: string;

  @Optional()
  @ApiEnum(
    ['customer-api', 'agent-api'],
    'The API that the token is for. It distinguishes tokens of customers and agents.',
  )
  aud?: Audience;

  @ApiOptionalString('The client that the token was issued for.', EXAMPLE.clientId)
  client_id?: string;

  @ApiOptionalString('The organization of the customer or agent.', EXAMPLE.organizationId)
  organization_id?: string;

  @ApiOptionalInteger('When the token was issued, in seconds since 1970.', EXAMPLE.seconds)
  iat?: number;

  @ApiOptionalInteger('When the token expires, in seconds since 1970.', EXAMPLE.seconds + 28_800)
  exp?: number;

  @ApiOptionalString('The id of the token.', EXAMPLE.tokenId)
  jti?: string;

  @ApiOptionalString('Only in agent tokens: the granted scopes, separated by spaces.', EXAMPLE.scope)
  scope?: string;

  @ApiOptionalString('Only in customer tokens: the grant that issued the token.', 'cookie')
  gty?: string;

  @ApiOptionalString('Only in tokens of a customer of a group.', EXAMPLE.groupId)
  group_id?: string;

  @Optional()
  @IsBoolean()
  @ApiProperty(USER_VERIFIED, true)
  user_verified?: true;

  @Optional()
  @Nested(() => Actor)
  @ApiProperty('Only in customer tokens that an agent obtained: the agent (RFC 8693 §4.1).')
  act?: Actor;

  @ApiOptionalString('The session of the token. The token ends with it.', EXAMPLE.sessionId)
  sid?: string;

  @ApiOptionalInteger('The epoch of the session. The token has ended if the session has another one.', 0)
  ep?: number;

  @ApiOptionalInteger(
    'Only in customer tokens: the generation of the customer. The token has ended if the customer has another one.',
    0,
  )
  gen?: number;

  @Optional()
  @ApiEnum(Object.keys(INACTIVE_REASONS), 'Only for the operator, if the token is inactive: the reason.', 'expired')
  inactive_reason?: InactiveReason;

  @ApiOptionalString('Only if a part of a token was sent: what to send instead.', 'token: replace %3A by a colon')
  error_hint?: string;
}

/** Hints about the form of the text that the caller sent. They disclose nothing about a token. */
const FORM_HINTS: Partial<Record<InactiveReason, string>> = {
  no_region: 'token: the region prefix is missing; send the whole token, REGION:JWS',
  percent_encoded: 'token: replace %3A by a colon',
};
/** Introspection and revocation for services inside the cluster (protocol §7.1 and §7.2). */
@ManagementController('oauth2')
export class IntrospectionController {
  private readonly introspections: Counter<'active' | 'reason'>;

  constructor(
    private readonly tokens: TokenInspection,
    private readonly revocation: TokenRevocation,
    metrics: MetricsRegistry,
  ) {
    const help = 'Introspected tokens, and why they are inactive.';
    this.introspections = metrics.counter('cas_introspections_total', help, 'active', 'reason');
    for (const reason of ['', ...Object.keys(INACTIVE_REASONS)]) this.count(reason, 0);
  }

  /** Of an inactive token, only the operator learns the reason, which the log line of the request has too. */
  @Post('introspect')
  @ApiRoute({
    summary: 'Introspect a token (RFC 7662)',
    description:
      'A service asks whether a token is valid, and who sent it. A resource server sees tokens of its audiences, the operator all tokens.',
    bodyFormats: ['form', 'json'],
    response: IntrospectionResponse,
    withGrantClaims: true,
    security: ['resource_server', 'operator', 'none'],
  })
  @HttpCode(200)
  async introspect(
    @Caller(ResourceServerGuard) caller: ResourceServer | undefined,
    @ValidatedBody(TokenBody, { form: true }) { token }: TokenBody,
  ): Promise<IntrospectionResponse> {
    const { claims, inactiveReason: reason } = await this.tokens.inspect(token, caller?.audiences);
    requestContext.set({ token: claims, reason });
    this.count(reason);
    if (!reason) return { active: true, token_type: 'Bearer', ...claims };
    const hint = FORM_HINTS[reason];
    return {
      active: false,
      ...(hint !== undefined && { error_hint: hint }),
      ...(!caller && { inactive_reason: reason }),
    };
  }

  @Post('revoke')
  @ApiRoute({
    summary: 'Revoke an access token or a refresh token (RFC 7009)',
    description:
      'Ends an access token with its descendants, or a refresh token with its session. A client ends its own tokens, the operator any token. The response is the same for an invalid token.',
    bodyFormats: ['form', 'json'],
    security: ['client', 'operator', 'none'],
  })
  @HttpCode(200)
  async revoke(
    @Caller(SecretClientGuard) caller: ClientApplication | undefined,
    @ValidatedBody(TokenBody, { form: true }) { token }: TokenBody,
  ): Promise<object> {
    await this.revocation.revoke(token, { clientId: caller?.clientId });
    return {};
  }

  private count(reason = '', introspections = 1): void {
    this.introspections.inc({ active: String(reason === ''), reason }, introspections);
  }
}
