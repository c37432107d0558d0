import { Injectable } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import type { EntityManager } from 'typeorm';
import type { AccessTokenClaims } from '../access-token/access-tokens.js';
import type { InactiveReason } from '../access-token/inactive-reason.js';
import { Customers } from '../customer/customers.js';
import { Optional } from '../oauth/parameters.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Database } from '../platform/database/database.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { Browsers } from '../session/browsers.js';
import { Endings } from '../session/endings.js';
import type { SessionKind } from '../session/session.entity.js';
import { Sessions } from '../session/sessions.js';

/** The description of the parameter `browsers`. */
export const BROWSERS = 'Whether the browsers forget the customer too. `false` if omitted.';

/** The parameters of the operator's `end_sessions` (protocol §4.14). */
export class EndSessionsBody {
  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  @ApiProperty(BROWSERS, true)
  browsers?: boolean;
}

/** The customer whose sessions end, and the caller that ends them. */
interface SessionsToEnd {
  entityId: string;
  organizationId: string;
  /** The client of the caller's token; absent for the operator. */
  clientId?: string;
  /** Whether no browser leads to the customer any more. */
  browsers: boolean;
  actor: AuditParty;
}

/** The sessions that stay at `end_sessions` without `browsers`. */
const KEPT_KINDS: SessionKind[] = ['own', 'sign_in'];

/** Ends sessions of customers, each ending in one transaction (protocol §3.10 and §4.14). */
@Injectable()
export class EndSessionsService {
  constructor(
    private readonly database: Database,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly browsers: Browsers,
    private readonly endings: Endings,
    private readonly audit: Audit,
  ) {}

  /** Ends all sessions of a customer. @returns whether the customer exists */
  async end({ entityId, organizationId, clientId, browsers, actor }: SessionsToEnd): Promise<boolean> {
    const exists = await this.database.transaction(async (manager) => {
      const generation = await this.customers.raiseGenerationIn(manager, entityId);
      if (generation === undefined) return false;
      await this.endAllIn(manager, entityId, generation, browsers);
      return true;
    });
    if (!exists) return false;
    const about = { organizationId, clientId, details: { browsers } };
    this.audit.success('sessions.ended', actor, party('customer', entityId), about);
    return true;
  }

  /**
   * The same in a transaction that has raised the generation of the customer.
   *
   * @param browsers whether the browsers end too. One that leads to no other customer loses its secret, so that a copy of
   *   its cookies does not lead to its next customer
   */
  async endAllIn(manager: EntityManager, entityId: string, generation: number, browsers: boolean): Promise<void> {
    await this.endings.recordCustomer(manager, entityId, generation);
    const browserIds = browsers ? await this.sessions.browsersOf(manager, entityId) : [];
    await this.browsers.writeAllIn(manager, browserIds);
    await this.sessions.deleteAllIn(manager, entityId, browsers ? [] : KEPT_KINDS);
    await this.browsers.deleteUnusedIn(manager, browserIds);
  }

  /** Ends an access token of a customer, with what was made with it. @returns the number of entries for verifiers */
  async endToken(claims: AccessTokenClaims): Promise<number> {
    const entries = await this.customers.change({ entityId: claims.sub }, (manager) =>
      this.sessions.endTokenIn(manager, claims),
    );
    return entries ?? 0;
  }

  /**
   * Ends a session of a customer with its access tokens, and all that was made with them.
   *
   * @returns the number of entries for verifiers; `undefined` if the customer does not have the session
   */
  endOne(entityId: string, sessionId: string, reason: InactiveReason): Promise<number | undefined> {
    return this.customers.change({ entityId }, (manager) =>
      this.sessions.endOneIn(manager, entityId, sessionId, reason),
    );
  }
}
