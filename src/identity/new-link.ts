import type { TokenLineage } from '../access-token/token-lineage.js';
import type { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import type { Clock } from '../platform/clock.js';
import type { Database } from '../platform/database/database.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { FIND_SCOPE, INSERT } from './customer-statements.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { dayOf, type IdleRule } from './idle-rule.js';
import type { IdentityScope, KnownBrowser, KnownBrowsers } from './known-browsers.js';
import { type LedCustomer, selectLedCustomers } from './led-customers.js';
import { credentialHash } from './link-credential.entity.js';
import { type LinkLineage, lineageOfLink } from './link-lineage.js';
import {
  DELETE_ANCESTORS,
  DELETE_BROWSER_OF_LINKS,
  DELETE_CREDENTIALS,
  DELETE_LINKS_OF_BROWSER,
  DELETE_ORIGIN,
  INSERT_ANCESTOR,
  INSERT_CREDENTIAL,
  INSERT_LINK,
  INSERT_ORIGIN,
} from './link-statements.js';

interface Services {
  database: Database;
  clock: Clock;
  browsers: KnownBrowsers;
  audit: Audit;
  idleRule: IdleRule;
}

/** The number of further customers that a new browser leads to. The rest stay with the earlier browser. */
const MAX_FURTHER_CUSTOMERS = 100;

/** One more, because the customer that is replaced is among them. */
const FIND_LAST_SEEN = selectLedCustomers('= ?', `ORDER BY scope_seen_day DESC LIMIT ${MAX_FURTHER_CUSTOMERS + 1}`);

/** The transferred customer, as far as a link needs it. */
interface TransferredCustomer extends IdentityScope {
  entityId: string;
  lineage: TokenLineage;
  linkGeneration: number;
}

/**
 * A new browser for a transferred customer. Only the response has its secret, so it leads nowhere unless the redemption
 * succeeds. Nothing is added to the earlier browser.
 */
export class NewLink {
  readonly secret = randomSecret('hex');
  private readonly browserId: string;
  private customer: TransferredCustomer;
  private earlier: KnownBrowser | undefined;
  private attempt: string | undefined;

  constructor(
    private readonly services: Services,
    private readonly candidates: CandidateCredentials | undefined,
    private readonly replace: boolean,
  ) {
    this.browserId = uuidv7(services.clock.now());
  }

  /** @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group */
  async prepare(code: { subject: string; organizationId: string; lineage: TokenLineage }): Promise<void> {
    const { database, browsers } = this.services;
    const { subject: entityId, organizationId, lineage } = code;
    const [row] = await database.select(FIND_SCOPE, [entityId, organizationId]);
    if (!row) throw OAuthError.invalidGrant('code: its customer was erased');
    const scope = { organizationId, groupId: row.group_id };
    this.customer = { ...scope, entityId, lineage, linkGeneration: row.link_generation ?? 0 };
    const [earlier] = this.candidates ? await browsers.all(this.candidates, scope) : [];
    const knownId = earlier?.customer?.entityId;
    if (knownId !== undefined && knownId !== entityId && !this.replace) throw OAuthError.identityConflict();
    this.earlier = earlier;
  }

  async store(attempt: string): Promise<void> {
    this.attempt = attempt;
    const { database, clock } = this.services;
    const { entityId, organizationId, groupId, linkGeneration } = this.customer;
    const { act, ...lineage } = this.lineage(attempt);
    const today = dayOf(clock.now());
    const now = new Date(clock.now());
    const agent = act?.gen === undefined ? ([null, null] as const) : ([act.sub, act.gen] as const);
    const further = await this.furtherCustomers();
    const ids = [entityId, ...further.map((each) => each.entity_id)];
    const { browserId, secret } = this;
    await Promise.all([
      database.insert(INSERT, [browserId, browserId, null, null, sha256(secret), today, null, now]),
      database.insert(INSERT_LINK, [
        ...([browserId, organizationId, groupId, entityId, linkGeneration, today, attempt] as const),
        JSON.stringify({ ...lineage, ...(act && { act }) }),
        ...agent,
      ]),
      ...further.map((each) => database.insert(INSERT_LINK, copyOf(each, browserId))),
      ...[...new Set(ids)].map((id) => database.insert(INSERT_CREDENTIAL, [credentialHash(id, secret), browserId])),
      ...[...new Set(lineage.ancestors)].map((id) => database.insert(INSERT_ANCESTOR, [attempt, id])),
      this.earlier && database.insert(INSERT_ORIGIN, [browserId, this.earlier.browserId]),
    ]);
  }

  /** Deletes the rows of an attempt that did not redeem the code. */
  async discard(): Promise<void> {
    const { database } = this.services;
    for (const statement of [DELETE_BROWSER_OF_LINKS, DELETE_LINKS_OF_BROWSER, DELETE_CREDENTIALS, DELETE_ORIGIN])
      await database.executeIdempotent(statement, [this.browserId]);
    if (this.attempt !== undefined) await database.executeIdempotent(DELETE_ANCESTORS, [this.attempt]);
  }

  audit(): void {
    const { entityId, organizationId } = this.customer;
    const subject = { kind: 'customer', id: entityId } as const;
    const details = { browser: this.browserId, redemption: this.attempt as string };
    const actor = { kind: 'customer' } as const;
    this.services.audit.record({
      event: 'browser.linked',
      outcome: 'success',
      actor,
      subject,
      organizationId,
      details,
    });
  }

  private lineage(attempt: string): LinkLineage {
    return lineageOfLink(this.customer.lineage, attempt);
  }

  private async furtherCustomers(): Promise<LedCustomer[]> {
    if (!this.earlier) return [];
    const { organizationId, groupId } = this.customer;
    const { browserId } = this.earlier;
    const all = await this.services.database.select(FIND_LAST_SEEN, [browserId, browserId]);
    return all
      .filter((each) => each.organization_id !== organizationId || each.group_id !== groupId)
      .filter((each) => !this.services.idleRule.isIdle(each.organization_id, each.scope_seen_day))
      .slice(0, MAX_FURTHER_CUSTOMERS);
  }
}

function copyOf(led: LedCustomer, browserId: string) {
  const { organization_id, group_id, entity_id, generation, scope_seen_day } = led;
  const { redemption, lineage, agent_id, agent_generation } = led;
  const scope = [browserId, organization_id, group_id] as const;
  const origin = [redemption, lineage, agent_id, agent_generation] as const;
  return [...scope, entity_id, generation, scope_seen_day, ...origin] as [
    ...typeof scope,
    string,
    number,
    number,
    ...typeof origin,
  ];
}
