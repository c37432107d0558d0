import { Injectable } from '@nestjs/common';
import { RaisedGenerations } from '../access-token/feed/raised-generations.js';
import { MigrationState } from '../access-token/migration-state.js';
import { Audit } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { bindWrite } from '../platform/database/bound-write.js';
import { writeStatement } from '../platform/database/statement.js';
import { CustomerLinks } from './customer-links.js';

const RAISE = 'UPDATE customer_identity SET generation = COALESCE(generation, 0) + 1';
const OF_CUSTOMER = 'WHERE entity_id = ? AND organization_id IS NOT NULL';

const RAISE_GENERATION = writeStatement<[entityId: string]>(`${RAISE} ${OF_CUSTOMER}`);

/**
 * Raises both generations in one statement, so that an exchange under way finds its code ended or creates an ended
 * link. Between two statements a failure would end the token of the caller, which then could not repeat the request.
 */
const RAISE_BOTH_GENERATIONS = writeStatement<[entityId: string]>(
  `${RAISE}, link_generation = COALESCE(link_generation, 0) + 1 ${OF_CUSTOMER}`,
);

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

/** Ends all sessions of a customer (protocol §4.14). */
@Injectable()
export class CustomerSessions {
  constructor(
    private readonly generations: RaisedGenerations,
    private readonly migration: MigrationState,
    private readonly links: CustomerLinks,
    private readonly audit: Audit,
  ) {}

  /**
   * Ends the tokens and codes of a customer, also those of requests under way. The generation decides, so the clocks of
   * the processes do not matter. A token that is requested after the response is valid.
   *
   * @returns whether the customer exists
   * @throws OAuthError `temporarily_unavailable` until the upgrade from release 1 is complete
   */
  async end({ entityId, organizationId, clientId, browsers, actor }: SessionsToEnd): Promise<boolean> {
    await this.migration.assertComplete();
    const raise = browsers ? RAISE_BOTH_GENERATIONS : RAISE_GENERATION;
    if ((await this.generations.raiseOfCustomer(entityId, bindWrite(raise, [entityId]))) === 0) return false;
    const subject = { kind: 'customer', id: entityId } as const;
    const details = { browsers };
    this.audit.record({
      event: 'sessions.ended',
      outcome: 'success',
      actor,
      subject,
      organizationId,
      clientId,
      details,
    });
    if (browsers) await this.links.deleteEndedLinksOf(entityId);
    return true;
  }
}
