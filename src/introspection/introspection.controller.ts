import { HttpCode, Post, Req } from '@nestjs/common';
import { MaxLength } from 'class-validator';
import type { Request } from 'express';
import { TokenInspection } from '../access-token/access-tokens.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import { readParameters, Text } from '../oauth/parameters.js';
import { readBody } from '../oauth/request-body.js';
import { REQUEST_ERRORS } from '../oauth/request-errors.js';
import { OperatorCredentials } from '../operator/operator-credentials.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import { requestContext } from '../platform/request-context/request-context.js';
import {
  ClientAuthentication,
  type ClientCredentials,
  CredentialParameters,
  readClientCredentials,
} from '../registry/client-authentication.js';
import { IntrospectionResponse } from './introspection-response.js';
import { TokenRevocation } from './token-revocation.js';

/** The parameters of introspection (RFC 7662 §2.1) and revocation (RFC 7009 §2.1). */
class TokenBody extends CredentialParameters {
  @Text('The access token, with its prefix. For revocation also a refresh token.', EXAMPLE.accessToken)
  @MaxLength(8192)
  token!: string;
}

const tokenExamples = (client_id: string) => ({
  'with the header Authorization': [],
  'with the secret in the body': { token: EXAMPLE.accessToken, client_id, client_secret: EXAMPLE.clientSecret },
});
/** The claims of every token, and `token_type`. */
const CLAIMS = ['token_type', 'iss', 'sub', 'aud', 'client_id', 'organization_id', 'iat', 'exp', 'jti', 'gen'];
/** Hints about the form of the text that the caller sent. They disclose nothing about a token. */
const FORM_HINTS: Partial<Record<InactiveReason, string>> = {
  no_region: 'token: the region prefix is missing; send the whole token, REGION:JWS',
  percent_encoded: 'token: replace %3A by a colon',
};
const CREDENTIAL_ERRORS = [
  REQUEST_ERRORS.secretTwice(),
  REQUEST_ERRORS.clientOfOtherHeader(),
  REQUEST_ERRORS.secretOfOperator(),
];

/** Introspection and revocation for services inside the cluster (protocol §7.1 and §7.2). */
@ManagementController('oauth2')
export class IntrospectionController {
  constructor(
    private readonly tokens: TokenInspection,
    private readonly revocation: TokenRevocation,
    private readonly clients: ClientAuthentication,
    private readonly operator: OperatorCredentials,
  ) {}

  /**
   * RFC 7662. A registered resource server may introspect the tokens of its audiences, the operator any token. Of an
   * inactive token, only the operator learns the reason, which the log line of the request has too.
   */
  @Post('introspect')
  @ApiRoute({
    summary: 'Introspect a token (RFC 7662)',
    description:
      'A service asks whether a token is valid, and who sent it. A resource server sees tokens of its audiences, the operator all tokens.',
    body: TokenBody,
    bodyFormats: ['form', 'json'],
    bodyExamples: tokenExamples(EXAMPLE.resourceServerId),
    response: IntrospectionResponse,
    responseExamples: {
      'a valid token': [...CLAIMS, 'gty'],
      'a token of a customer in a group, by a transfer of an agent': [
        ...CLAIMS,
        'gty',
        'group_id',
        'act',
        'ancestors',
        'transfers',
      ],
      'an invalid or ended token': { active: false },
      'an ended token, for the operator': { active: false, inactive_reason: 'revoked' },
    },
    withGrantClaims: true,
    security: ['resource_server', 'operator', 'none'],
    errors: () => CREDENTIAL_ERRORS,
  })
  @HttpCode(200)
  async introspect(@Req() request: Request): Promise<IntrospectionResponse> {
    const { caller, token } = await this.read(request, (credentials) => this.clients.resourceServer(credentials));
    const { claims, inactiveReason: reason } = await this.tokens.inspect(token, caller?.audiences);
    if (!reason) return { active: true, token_type: 'Bearer', ...claims };
    requestContext.set({ reason });
    const hint = FORM_HINTS[reason];
    return {
      active: false,
      ...(hint !== undefined && { error_hint: hint }),
      ...(!caller && { inactive_reason: reason }),
    };
  }

  /** RFC 7009. A client with a secret may revoke its own tokens, the operator any token. */
  @Post('revoke')
  @ApiRoute({
    summary: 'Revoke an access token or a refresh token (RFC 7009)',
    description:
      'Ends an access token with its descendants, or a refresh token with its family. A client ends its own tokens, the operator any token. The response is the same for an invalid token.',
    body: TokenBody,
    bodyFormats: ['form', 'json'],
    bodyExamples: tokenExamples(EXAMPLE.serverClientId),
    security: ['client', 'operator', 'none'],
    errors: () => CREDENTIAL_ERRORS,
  })
  @HttpCode(200)
  async revoke(@Req() request: Request): Promise<object> {
    const { caller, token } = await this.read(request, (credentials) => this.clients.clientWithSecret(credentials));
    await this.revocation.revoke(token, { clientId: caller?.clientId });
    return {};
  }

  /**
   * Reads a request and authenticates its caller (protocol §2.7). `caller` is `undefined` for the operator.
   *
   * @throws OAuthError `invalid_client`; `invalid_request` if the request authenticates in two ways
   */
  private async read<Caller>(request: Request, authenticate: (credentials: ClientCredentials) => Caller) {
    const { authorization } = request.headers;
    const isOperator = this.operator.match(authorization);
    // a caller with wrong credentials in the header gets 401, even if its body is wrong
    if (authorization !== undefined && !isOperator) authenticate(readClientCredentials(authorization, {}));
    const parameters = await readBody(request, { form: true });
    if (isOperator && parameters.client_secret !== undefined) throw REQUEST_ERRORS.secretOfOperator();
    const caller = isOperator ? undefined : authenticate(readClientCredentials(authorization, parameters));
    return { caller, token: readParameters(TokenBody, parameters).token };
  }
}
