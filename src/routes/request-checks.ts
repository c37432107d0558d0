import { Injectable, type PipeTransform, type Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type Principal, principalOf } from '../bearer/principal.js';
import { parseQuery } from '../oauth/form.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { readParameters } from '../oauth/parameters.js';
import { type BodyOptions, readBody } from '../oauth/request-body.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { Limits } from '../rate-limit/limits.js';
import type { ClientApplication } from '../registry/client-application.entity.js';
import { GrantSettingsClasses } from '../registry/grant-settings-classes.js';
import type { Organization } from '../registry/organization.entity.js';
import { Registry } from '../registry/registry.js';
import type { Browser, ClientParameters } from './client-request.js';

export function browserOf({ headers, res }: Request): Browser {
  return {
    origin: headers.origin,
    cookies: headers.cookie,
    setCookie: (line) => (res as Response).appendHeader('Set-Cookie', line),
  };
}

export interface CheckServices {
  registry: Registry;
  limits: Limits;
}

/** @throws OAuthError the error response to the request */
export type RequestCheck<Checked = RouteRequest, Services = CheckServices> = (
  request: Checked,
  services: Services,
) => void | Promise<void>;

export const PARAMETER_CHECKS: RequestCheck[] = [readDeclaredParameters, validateParameters];

/** The guard of the route has authenticated the caller before. The token endpoint has its own list, TOKEN_CHECKS. */
export const CLIENT_CHECKS: RequestCheck[] = [
  ...PARAMETER_CHECKS,
  identifyClient,
  assertClientMayUseGrant,
  takeTokenRateLimit,
  assertOrganizationOfCaller,
  findOrganization,
];

/** Runs checks in their order. The first check that fails determines the error response. @throws OAuthError */
export async function runChecks<Checked, Services>(
  checks: RequestCheck<Checked, Services>[],
  request: Checked,
  services: Services,
): Promise<void> {
  for (const check of checks) {
    const pending = check(request, services);
    if (pending) await pending;
  }
}

/** A request under check. A check can read the values that the checks before it have set. */
export abstract class CheckedRequest<Parameters extends ClientParameters = ClientParameters> {
  given!: Record<string, unknown>;
  parameterClass!: Type<Parameters>;
  /** Set by `validateParameters`. */
  parameters!: Parameters;
  caller: Principal | undefined;
  /** The grant that the client must be allowed to use, if there is one. */
  grant: { name: string; optIn?: boolean } | undefined;
  /** Set by `identifyClient`. */
  client!: ClientApplication;
  /** Set by `findOrganization`. `undefined` if neither the parameters nor the caller name one. */
  organization: Organization | undefined;
  /** The errors whose hints differ between the kinds of routes. */
  abstract readonly errors: { grant(grantType: string): OAuthError; organization(): OAuthError };

  constructor(readonly http: Request) {}

  /** The requested organization, else the organization of the caller. */
  get organizationId(): string | undefined {
    return this.parameters.organization_id ?? this.caller?.organizationId;
  }
}

export interface RequestDeclaration extends BodyOptions {
  name: 'body' | 'query';
  parameters: Type<object>;
  grant?: string | undefined;
  checks: RequestCheck[];
}

const ROUTE_ERRORS = {
  grant: (grantType: string) => OAuthError.unauthorizedClient(`client_id: may not use the grant ${grantType}`),
  organization: () => OAuthError.invalidRequest('organization_id: must be the organization of the bearer token'),
};

export class RouteRequest extends CheckedRequest {
  readonly errors = ROUTE_ERRORS;

  constructor(
    http: Request,
    readonly declared: RequestDeclaration,
  ) {
    super(http);
    this.parameterClass = declared.parameters as Type<ClientParameters>;
    this.caller = principalOf(http);
  }

  get checked(): object {
    const { parameters, client, organization, declared } = this;
    if (declared.checks === PARAMETER_CHECKS) return parameters;
    const { network } = requestContext.required();
    return { [declared.name]: parameters, client, organization, network };
  }
}

@Injectable()
export class RequestChecksPipe implements PipeTransform<RouteRequest> {
  constructor(
    readonly registry: Registry,
    readonly limits: Limits,
    private readonly grants: GrantSettingsClasses,
  ) {}

  async transform(request: RouteRequest): Promise<object> {
    const { checks, grant: name } = request.declared;
    if (name !== undefined) request.grant = { name, optIn: this.grants.isOptIn(name) };
    await runChecks(checks, request, this);
    return request.checked;
  }
}

async function readDeclaredParameters(request: RouteRequest): Promise<void> {
  const { http, declared } = request;
  request.given = declared.name === 'query' ? parseQuery(http.url) : await readBody(http, declared);
}

/** Validates the parameters by the rules of their class. Undeclared parameters are ignored (RFC 6749 §3.2). */
export function validateParameters(request: CheckedRequest): void {
  request.parameters = readParameters(request.parameterClass, request.given);
}

/** A request from a browser must come from one of the client's origins. @throws OAuthError `invalid_request` */
export function identifyClient(request: CheckedRequest, { registry }: CheckServices): void {
  request.client = registry.clientCalling(request.parameters.client_id, request.http.headers.origin);
  requestContext.set({ clientId: request.client.clientId });
}

/** A client without `grant_types` may use every grant except those that declare `optIn`. */
export function assertClientMayUseGrant({ client, grant, errors }: CheckedRequest): void {
  if (grant && !client.mayUse(grant.name, grant.optIn)) throw errors.grant(grant.name);
}

/** Requests that fail an earlier check do not count. Requests that fail a later check count. */
export function takeTokenRateLimit({ client }: CheckedRequest, { limits }: CheckServices): void {
  limits.takeKeys('tokens', client.clientId);
}

/** A caller with a bearer token acts in the organization of the token only. */
export function assertOrganizationOfCaller({ caller, organizationId, errors }: CheckedRequest): void {
  if (caller && organizationId !== caller.organizationId) throw errors.organization();
}

/** @throws OAuthError if the organization does not admit the client */
export function findOrganization(request: CheckedRequest, { registry }: CheckServices): void {
  const { organizationId, client } = request;
  if (organizationId !== undefined) request.organization = registry.organizationAdmitting(client, organizationId);
}
