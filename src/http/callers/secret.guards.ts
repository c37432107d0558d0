import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import type { Request } from 'express';
import { OAuthError, REQUEST_ERRORS } from '../../oauth/oauth-error.js';
import { readBody } from '../../oauth/request-body.js';
import { type RouteParameters, routeParametersOf } from '../../platform/http/route-parameters.js';
import { ClientApplication } from '../../registry/client-application.entity.js';
import type { ResourceServer } from '../../registry/resource-server.entity.js';
import { authorizationOf } from './authorization.js';
import { ClientAuthentication, type ClientCredentials, readClientCredentials } from './client-authentication.js';
import { OperatorCredentials } from './operator-credentials.js';
import { recordCaller } from './principal.js';

/** Admits callers that prove a secret or send an assertion. The caller becomes the `user` of the request. */
export abstract class SecretGuard<Authenticated> implements CanActivate {
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    const caller = await this.authenticate(request, routeParametersOf(context.getHandler()));
    request.user = caller as Express.User;
    return true;
  }

  /** @throws OAuthError `invalid_client`, or an error of the body */
  protected abstract authenticate(request: Request, route: RouteParameters): Promise<Authenticated>;
}

function recorded<Caller extends ClientApplication | ResourceServer>(caller: Caller): Caller {
  recordCaller(caller instanceof ClientApplication ? { clientId: caller.clientId } : { resourceServerId: caller.id });
  return caller;
}

/** Admits clients. A client without a secret needs another proof, such as PKCE (protocol §6.8). */
@Injectable()
export class ClientGuard extends SecretGuard<ClientApplication> {
  constructor(private readonly clients: ClientAuthentication) {
    super();
  }

  protected async authenticate(request: Request): Promise<ClientApplication> {
    const parameters = await readBody(request, { form: true });
    return recorded(await this.clients.client(readClientCredentials(authorizationOf(request), parameters)));
  }
}

/** Admits the operator too, who is `undefined` (protocol §2.7). */
abstract class OperatorOrSecretGuard<Authenticated extends ClientApplication | ResourceServer> extends SecretGuard<
  Authenticated | undefined
> {
  constructor(private readonly operator: OperatorCredentials) {
    super();
  }

  protected async authenticate(request: Request, { body, form = false }: RouteParameters) {
    const authorization = authorizationOf(request);
    const operator = await this.operator.match(authorization, 'support');
    if (operator) recordCaller({ operator: operator.actor });
    // a caller with wrong credentials in the header gets 401, even if its body is wrong
    if (authorization && !operator) recorded(await this.callerOf(readClientCredentials(authorization, {})));
    const parameters = body ? await readBody(request, { form }) : {};
    if (!operator) return recorded(await this.callerOf(readClientCredentials(authorization, parameters)));
    if (parameters.client_secret !== undefined)
      throw OAuthError.invalidRequest('client_secret: given in addition to Authorization');
    if (parameters.client_assertion !== undefined) throw REQUEST_ERRORS.assertionAndSecret();
    return undefined;
  }

  /** @throws OAuthError `invalid_client` */
  protected abstract callerOf(credentials: ClientCredentials): Promise<Authenticated>;
}

/** Admits clients with a secret or an assertion, and the operator. */
@Injectable()
export class SecretClientGuard extends OperatorOrSecretGuard<ClientApplication> {
  constructor(
    operator: OperatorCredentials,
    private readonly clients: ClientAuthentication,
  ) {
    super(operator);
  }

  protected callerOf(credentials: ClientCredentials): Promise<ClientApplication> {
    return this.clients.authenticatedClient(credentials);
  }
}

/** Admits resource servers, and the operator. */
@Injectable()
export class ResourceServerGuard extends OperatorOrSecretGuard<ResourceServer> {
  constructor(
    operator: OperatorCredentials,
    private readonly clients: ClientAuthentication,
  ) {
    super(operator);
  }

  protected callerOf(credentials: ClientCredentials): Promise<ResourceServer> {
    return this.clients.resourceServer(credentials);
  }
}
