import { Injectable } from '@nestjs/common';
import { IsString, MaxLength } from 'class-validator';
import type { Request } from 'express';
import { readParameters } from '../oauth/parameters.js';
import { readBody } from '../oauth/request-body.js';
import { REQUEST_ERRORS } from '../oauth/request-errors.js';
import { OperatorCredentials } from '../operator/operator-credentials.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { type ClientCredentials, ClientParameters, readClientCredentials } from '../registry/client-authentication.js';

/** The parameters of introspection (RFC 7662 §2.1) and revocation (RFC 7009 §2.1). */
export class TokenBody extends ClientParameters {
  @IsString()
  @MaxLength(8192)
  @ApiProperty('The access token, with its prefix. For revocation also a refresh token.', EXAMPLE.accessToken)
  token!: string;
}

/** A request about a token. `caller` is `undefined` for the operator. */
interface TokenRequest<Caller> {
  token: string;
  caller: Caller | undefined;
}

/** Reads requests of introspection and revocation, and authenticates their callers (protocol §2.7). */
@Injectable()
export class TokenRequests {
  constructor(private readonly operator: OperatorCredentials) {}

  /**
   * @param authenticate authenticates a caller that is not the operator
   * @throws OAuthError `invalid_client`; `invalid_request` if the request authenticates in two ways
   */
  async read<Caller>(
    request: Request,
    authenticate: (credentials: ClientCredentials) => Caller,
  ): Promise<TokenRequest<Caller>> {
    const { authorization } = request.headers;
    const isOperator = this.operator.match(authorization);
    // a caller with wrong credentials in the header gets 401, also if its body is wrong
    if (authorization !== undefined && !isOperator) authenticate(readClientCredentials(authorization, {}));
    const parameters = await readBody(request, { form: true });
    if (isOperator && parameters.client_secret !== undefined) throw REQUEST_ERRORS.secretOfOperator();
    const caller = isOperator ? undefined : authenticate(readClientCredentials(authorization, parameters));
    return { caller, token: readParameters(TokenBody, parameters).token };
  }
}
