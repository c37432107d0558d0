import { type CanActivate, type ExecutionContext, Injectable, type Type } from '@nestjs/common';
import type { Request } from 'express';
import type { AccessTokenClaims } from '../../access-token/access-tokens.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { routeParametersOf } from '../../platform/http/route-parameters.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { Registry } from '../../registry/registry.js';
import { ENDED_REASONS, qualifiedClientId } from '../../session/token-validity.js';
import { isCustomerRoute } from '../routes/customer-cors.js';
import { BearerAuthGuard, BearerStrategy } from './bearer.strategy.js';
import {
  type AgentPrincipal,
  assertAgent,
  assertCustomer,
  type CustomerPrincipal,
  factsOf,
  type Principal,
  principalOf,
  recordCaller,
} from './principal.js';

/** A guard that admits callers of one kind. */
export interface CallerGuard<Authenticated extends Principal = Principal> extends CanActivate {
  /** @throws OAuthError if the guard does not admit the caller */
  admit(principal: Principal): Authenticated;
}

/** Admits requests with a valid bearer token, of an agent or of a customer. */
@Injectable()
export class BearerGuard implements CallerGuard {
  /** @internal */
  constructor(
    /** @internal */
    protected readonly authentication: BearerAuthGuard,
    private readonly registry: Registry,
  ) {}

  /** @throws OAuthError `invalid_token`; `insufficient_scope`; `invalid_request` for an `Origin` of another client */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    const request = context.switchToHttp().getRequest<Request>();
    if (!principalOf(request)) await this.authenticate(context);
    const principal = principalOf(request) as Principal;
    this.admit(principal);
    const { checksClient, checksOrigin } = routeParametersOf(context.getHandler());
    if (!checksClient && !checksOrigin) this.assertOriginOf(principal, request);
    return true;
  }

  admit(principal: Principal): Principal {
    return principal;
  }

  /** @internal */
  protected async authenticate(context: ExecutionContext): Promise<void> {
    await this.authentication.canActivate(context);
  }

  /** A route whose body names a client compares the `Origin` with that client instead (protocol §2.8). */
  private assertOriginOf({ claims }: Principal, { headers, path }: Request): void {
    const { listener } = requestContext.required();
    if (headers.origin !== undefined && isCustomerRoute({ listener, path }))
      this.registry.requireClient(qualifiedClientId(claims), headers.origin);
  }
}

/** Admits requests with the access token of a customer. */
@Injectable()
export class CustomerGuard extends BearerGuard implements CallerGuard<CustomerPrincipal> {
  /** @throws OAuthError `invalid_token` */
  override admit(principal: Principal): CustomerPrincipal {
    return assertCustomer(principal);
  }
}

/**
 * Also admits a customer's token that has expired or ended, for a route that ends it: its descendants may live longer.
 * @internal
 */
@Injectable()
export class EndedCustomerGuard extends CustomerGuard {
  constructor(
    authentication: BearerAuthGuard,
    registry: Registry,
    private readonly strategy: BearerStrategy,
  ) {
    super(authentication, registry);
  }

  protected override async authenticate(context: ExecutionContext): Promise<void> {
    try {
      await super.authenticate(context);
    } catch (error) {
      const reasons: (string | undefined)[] = ['expired', ...ENDED_REASONS];
      if (!(error instanceof OAuthError && error.facts.token && reasons.includes(error.reason))) throw error;
      const principal = this.strategy.principalOf(error.facts.token as AccessTokenClaims);
      context.switchToHttp().getRequest<Request>().user = principal;
      recordCaller(factsOf(principal));
    }
  }
}

const agentGuards = new Map<string, Type<CallerGuard<AgentPrincipal>>>();

/** The guard that admits requests of agents whose token has a scope, such as `customers:own`. */
export function AgentGuard(scope: string): Type<CallerGuard<AgentPrincipal>> {
  const known = agentGuards.get(scope);
  if (known) return known;
  @Injectable()
  class ScopeGuard extends BearerGuard implements CallerGuard<AgentPrincipal> {
    override admit(principal: Principal): AgentPrincipal {
      return assertAgent(principal, scope);
    }
  }
  agentGuards.set(scope, ScopeGuard);
  return ScopeGuard;
}

export const isBearerGuard = (guard: Type): boolean => guard === BearerGuard || guard.prototype instanceof BearerGuard;

export const isAgentGuard = (guard: Type): boolean => [...agentGuards.values()].includes(guard as never);
