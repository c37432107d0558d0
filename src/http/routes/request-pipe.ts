import { Injectable, type PipeTransform, type Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import { parseQuery } from '../../oauth/form.js';
import { Limits } from '../../oauth/limits.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { readParameters } from '../../oauth/parameters.js';
import { type BodyOptions, readBody } from '../../oauth/request-body.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { GrantSettingsClasses } from '../../registry/grant-settings-classes.js';
import { Registry } from '../../registry/registry.js';
import { principalOf } from '../callers/principal.js';
import type { Browser, ClientParameters } from './client-request.js';

export function browserOf({ headers, res }: Request): Browser {
  return {
    origin: headers.origin,
    cookies: headers.cookie,
    setCookie: (line) => (res as Response).appendHeader('Set-Cookie', line),
  };
}

/** What a decorator of parameter.decorators.ts reads of a request. */
export interface RequestDeclaration extends BodyOptions {
  name: 'body' | 'query';
  parameters: Type<object>;
  checksClient: boolean;
  /** The grant that the client must be allowed to use, if there is one. */
  grant?: string | undefined;
}

export interface DeclaredRequest {
  http: Request;
  declared: RequestDeclaration;
}

const ERRORS = {
  grant: (grantType: string) => OAuthError.unauthorizedClient(`client_id: may not use the grant ${grantType}`),
  organization: () => OAuthError.invalidRequest('organization_id: must be the organization of the bearer token'),
};

/** Reads and checks what a route declares. The guard of the route has authenticated the caller before. */
@Injectable()
export class RequestPipe implements PipeTransform<DeclaredRequest> {
  constructor(
    private readonly registry: Registry,
    private readonly limits: Limits,
    private readonly grants: GrantSettingsClasses,
  ) {}

  /** The first check that fails determines the error response. @throws OAuthError */
  async transform({ http, declared }: DeclaredRequest): Promise<object> {
    const { name, parameters: type, checksClient, grant } = declared;
    const sent = name === 'query' ? parseQuery(http.url) : await readBody(http, declared);
    const parameters = readParameters(type, sent);
    return checksClient
      ? { [name]: parameters, ...this.checkedClient(http, parameters as ClientParameters, grant) }
      : parameters;
  }

  private checkedClient(http: Request, { client_id, organization_id }: ClientParameters, grant: string | undefined) {
    const client = this.registry.requireClient(client_id, http.headers.origin);
    const { clientId } = client;
    requestContext.set({ clientId });
    if (grant !== undefined && !client.mayUse(grant, this.grants.isOptIn(grant))) throw ERRORS.grant(grant);
    this.limits.takeKeys('tokens', clientId);
    const caller = principalOf(http);
    const organizationId = organization_id ?? caller?.organizationId;
    if (caller && organizationId !== caller.organizationId) throw ERRORS.organization();
    const organization =
      organizationId === undefined ? undefined : this.registry.requireOrganization(client, organizationId);
    return { client, organization, network: requestContext.required().network };
  }
}
