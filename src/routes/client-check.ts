import { Injectable, type PipeTransform } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { admittingOrganization } from '../registry/admitting-organization.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { GrantSettingsClasses } from '../registry/grant-settings-classes.js';
import type { Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';

/** The parameters by which a request names its client and its organization. */
export interface ClientParameters {
  client_id: string;
  organization_id?: string;
}

/** The client of a request, after the service has checked it, its `Origin` and the organization. */
export interface CheckedClient<Parameters extends ClientParameters = ClientParameters> {
  client: ClientApplication;
  /**
   * The organization that the parameters name, else that of the bearer token. It admits the client. `undefined` if
   * neither names one.
   */
  organization: Parameters extends { organization_id: string } ? Organization : Organization | undefined;
  /**
   * The caller's network: an IPv4 address, or the /64 of an IPv6 address. Only compare it, or hash it; its form may
   * change.
   */
  network: string;
}

/** How a route checks the client. */
export interface ClientCheckOptions {
  /** The `grant_type` of the grant that the route belongs to. Clients that may not use the grant get an error. */
  grant?: string;
}

/** What a decorator has read from a request, for the check of its client. */
export interface UncheckedRequest extends ClientCheckOptions {
  name: 'body' | 'query';
  parameters: ClientParameters;
  origin: string | undefined;
}

/** Checks the client, the `Origin` and the organization of a request. */
@Injectable()
export class ClientCheckPipe implements PipeTransform {
  constructor(
    private readonly registry: Registry,
    private readonly limits: RateLimits,
    private readonly grants: GrantSettingsClasses,
  ) {}

  /** @throws OAuthError `invalid_request`, `unauthorized_client`; 429 if the limit `tokens` is reached */
  transform({ name, parameters, origin, grant }: UncheckedRequest): CheckedClient {
    const client = this.registry.clientCalling(parameters.client_id, origin);
    const { clientId } = client;
    requestContext.set({ clientId });
    if (grant !== undefined && !client.mayUse(grant, this.grants.isOptIn(grant)))
      throw OAuthError.unauthorizedClient(`client_id: may not use the grant ${grant}`);
    const waitSeconds = this.limits.take('tokens', clientId);
    if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'tokens');
    const organizationId = organizationIdOf(parameters);
    const organization =
      organizationId === undefined ? undefined : admittingOrganization(this.registry, organizationId, client);
    const { network } = requestContext.required();
    return { [name]: parameters, client, organization: organization as Organization, network };
  }
}

/** The organization in the parameters. A caller with a bearer token acts in the organization of the token only. */
function organizationIdOf({ organization_id }: ClientParameters): string | undefined {
  const ofCaller = requestContext.required().principal?.organizationId;
  if (ofCaller !== undefined && organization_id !== undefined && organization_id !== ofCaller)
    throw OAuthError.invalidRequest('organization_id: must be the organization of the bearer token');
  return organization_id ?? ofCaller;
}
