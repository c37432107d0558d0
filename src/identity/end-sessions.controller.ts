import { HttpCode, Post } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import { inactiveToken } from '../access-token/inactive-reason.js';
import { RevocationLimit } from '../feed/revocation-limit.js';
import { BearerGuard } from '../http/callers/bearer.guard.js';
import {
  type AgentPrincipal,
  agentActor,
  assertAgent,
  CUSTOMERS_OWN,
  type CustomerPrincipal,
  ownId,
  type Principal,
} from '../http/callers/principal.js';
import type { Browser } from '../http/routes/client-request.js';
import { Caller, CallingBrowser, ValidatedBody } from '../http/routes/parameter.decorators.js';
import { Limits } from '../oauth/limits.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { party } from '../platform/audit/audit.js';
import { ApiProperty, ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/listener.decorators.js';
import { Optional } from '../platform/validation/validation.js';
import { qualifiedClientId } from '../session/token-validity.js';
import { BROWSERS, EndSessionsService } from './end-sessions.service.js';
import { IdentityCookies } from './identity-cookies.js';
import { NamedCustomerBody, NamedCustomers, unknownCustomer } from './named-customers.js';

class CustomerEndSessionsBody extends NamedCustomerBody {
  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  @ApiProperty(BROWSERS, true)
  browsers?: boolean;
}

const externalIdOfCustomer = () => OAuthError.invalidRequest('external_id: only for agents');
const COOKIES_NEEDED = 'browsers: needs the identity cookies of a browser that got the customer without a transfer';

/** Lets a customer or an agent end all sessions of a customer (protocol §4.14). */
@PublicController('v2/customer/end_sessions')
export class EndSessionsController {
  constructor(
    private readonly limits: Limits,
    private readonly revocationLimit: RevocationLimit,
    private readonly cookies: IdentityCookies,
    private readonly customers: NamedCustomers,
    private readonly sessions: EndSessionsService,
  ) {}

  @Post()
  @ApiRoute({
    summary: 'End all sessions of a customer',
    description:
      'Ends all access tokens, refresh tokens and transfer tokens of a customer, and its devices by transfer. With `browsers: true` no browser leads to the customer any more. The caller is the customer, or an agent with the scope `customers:own`. A token that is requested after the response is valid.',
    errors: ['403 insufficient_scope', '429 temporarily_unavailable'],
  })
  @HttpCode(200)
  async end(
    @Caller(BearerGuard) principal: Principal,
    @ValidatedBody(CustomerEndSessionsBody, { mayBeEmpty: true }) body: CustomerEndSessionsBody,
    @CallingBrowser() browser: Browser,
  ): Promise<object> {
    const { organizationId, clientId } = principal;
    this.limits.takeKeys('tokens', qualifiedClientId(principal.claims));
    const isCustomer = principal.kind === 'customer';
    const entityId = isCustomer
      ? await this.idOfCustomer(principal, body, browser)
      : await this.idOfAgent(principal, body);
    const actor = isCustomer ? party('customer', entityId) : agentActor(principal);
    const { browsers = false } = body;
    if (await this.sessions.end({ entityId, organizationId, clientId, browsers, actor })) return {};
    // the customer was erased in the meantime
    throw isCustomer ? inactiveToken('customer_generation') : unknownCustomer(body);
  }

  private async idOfCustomer(
    customer: CustomerPrincipal,
    { customer_id, external_id, browsers }: CustomerEndSessionsBody,
    browser: Browser,
  ): Promise<string> {
    if (external_id !== undefined) throw externalIdOfCustomer();
    const entityId = ownId(customer, customer_id);
    if (browsers) await this.assertBrowserOf(customer, browser);
    this.revocationLimit.take();
    return entityId;
  }

  private async idOfAgent(agent: AgentPrincipal, named: NamedCustomerBody): Promise<string> {
    return this.customers.idOf(assertAgent(agent, CUSTOMERS_OWN), named);
  }

  /** A thief of a token can lead a browser to the customer by a transfer, so the cookies must be of a browser that came without one. */
  private async assertBrowserOf({ entityId }: CustomerPrincipal, browser: Browser): Promise<void> {
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    if (await this.sessions.mayEndBrowsers(candidates, entityId)) return;
    throw OAuthError.invalidRequest(COOKIES_NEEDED);
  }
}
