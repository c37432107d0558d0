import { Injectable } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import type { EntityManager } from 'typeorm';
import { RaisedGenerations } from '../access-token/feed/raised-generations.js';
import { Audit, party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Optional } from '../oauth/parameters.js';
import { Database } from '../platform/database/database.js';
import { writeIn } from '../platform/database/in-transaction.js';
import { writeStatement } from '../platform/database/statement.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { CustomerBrowsers } from './customer-browsers.js';

/** The description of the parameter `browsers`. */
export const BROWSERS = 'Whether the browsers forget the customer too. `false` if omitted.';

/** The parameters of the operator's `end_sessions` (protocol §4.14). */
export class EndSessionsBody {
  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  @ApiProperty(BROWSERS, true)
  browsers?: boolean;
}

/**
 * Links from transfers also end, because they carry the generation of their transfer. Raising `link_generation` ends
 * all links. `link_generation` comes first, because MySQL assigns from left to right.
 */
const endSessions = (linkGeneration: string) =>
  writeStatement<[entityId: string]>(
    `UPDATE customer SET version = version + 1, link_generation = ${linkGeneration}, generation = generation + 1
      WHERE entity_id = ? AND erased_at IS NULL`,
  );

const END_SESSIONS = endSessions('link_generation');
const END_SESSIONS_AND_LINKS = endSessions('generation + 1');

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
    private readonly database: Database,
    private readonly generations: RaisedGenerations,
    private readonly browsers: CustomerBrowsers,
    private readonly audit: Audit,
  ) {}

  /**
   * One UPDATE ends everything, because each check compares generations: `ended-statement.ts` for tokens, codes and
   * families, and `links.ts` for links. The number of links, which a thief can make, does not change its cost. If the
   * removal of the links then fails, they lead nowhere, and a repetition removes them.
   *
   * @returns whether the customer exists
   */
  async end({ entityId, organizationId, clientId, browsers, actor }: SessionsToEnd): Promise<boolean> {
    const exists = await this.database.transaction((manager) => this.endIn(manager, entityId, browsers));
    if (!exists) return false;
    const about = { organizationId, clientId, details: { browsers } };
    this.audit.success('sessions.ended', actor, party('customer', entityId), about);
    if (browsers) await this.browsers.endAll([entityId], true);
    return true;
  }

  /** The same in a transaction. The caller audits the change, and removes the links afterwards. */
  async endIn(manager: EntityManager, entityId: string, browsers: boolean): Promise<boolean> {
    const statement = browsers ? END_SESSIONS_AND_LINKS : END_SESSIONS;
    if ((await writeIn(manager, statement, [entityId])) === 0) return false;
    await this.generations.record('customer-api', [entityId], manager);
    return true;
  }
}
