import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Denylist } from '../access-token/denylist.js';
import type { TokenLineage } from '../access-token/token-lineage.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { insertRowsIn, selectIn, writeIn } from '../platform/database/in-transaction.js';
import { insertStatement, selectStatement } from '../platform/database/statement.js';
import { placeholdersFor, valueList } from '../platform/database/value-list.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { uuidv7 } from '../platform/uuid.js';
import { LOCK_BROWSER } from './browser-customers.js';
import type { IdentityScope } from './customer.js';
import { CustomerCreation } from './customer-creation.js';
import { CustomerDevices, rootOf } from './customer-devices.js';
import { FIND } from './customer-statements.js';
import { type CandidateCredentials, secretCookieOf } from './identity-cookies.js';
import { KnownBrowser } from './known-browser.entity.js';
import {
  entityIdsByBeginning,
  insertLinks,
  type LinkKey,
  type LinkLineage,
  type LinkRow,
  linksOf,
  raiseVersions,
  unlink,
  withoutEndedAgents,
} from './links.js';
import { type RecognizedBrowser, RecognizedBrowsers } from './recognized-browsers.js';

/** The numbers of further customers that a new browser leads to. The rest stay with the earlier browser. */
const MAX_FURTHER_CUSTOMERS = 200;
const MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION = 20;
/** The number of browsers that have a copy of one link. */
const MAX_COPIES = 100;

const INSERT_BROWSER = insertStatement({
  into: KnownBrowser,
  columns: ['browser_id', 'secret_hash', 'version'],
});

/** The transferred customer. */
interface TransferredCustomer extends IdentityScope {
  entityId: string;
  lineage: TokenLineage;
}

/** Creates browsers that lead to a customer of another device (protocol §5.6). */
@Injectable()
export class RememberedBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly browsers: RecognizedBrowsers,
    private readonly audit: Audit,
    private readonly denylist: Denylist,
    private readonly creation: CustomerCreation,
    private readonly devices: CustomerDevices,
  ) {}

  /**
   * Reads and checks before the redemption, so that an error leaves the code usable.
   *
   * @param candidates the identity cookies of the request
   * @param replace whether the customer may replace another one of the browser
   * @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group
   */
  async prepare(
    code: { subject: string; organizationId: string; lineage: TokenLineage },
    candidates: CandidateCredentials | undefined,
    replace: boolean,
  ): Promise<NewBrowser> {
    const { subject: entityId, organizationId, lineage } = code;
    const [row] = await this.database.select(FIND, [entityId, organizationId]);
    if (!row) throw OAuthError.invalidGrant('code: its customer was erased');
    const customer = { organizationId, groupId: row.group_id, entityId, lineage };
    const earlier = await this.browsers.find(candidates, customer);
    const knownId = earlier?.customer?.entityId;
    if (knownId !== undefined && knownId !== entityId && !replace) throw OAuthError.identityConflict();
    const now = this.clock.now();
    return new NewBrowser(customer, earlier, replace, uuidv7(now), dayOf(now), this.creation.limitOfOne());
  }

  /**
   * Creates the new browser in the transaction of the redemption, which has already changed the row of the customer. Of
   * two transactions that change the links of one browser or customer, the second one reads what the first one has
   * changed.
   *
   * @throws OAuthError `identity_conflict` if a parallel request has created another customer for the earlier browser;
   * `temporarily_unavailable` if the network created too many customers and browsers
   */
  async store(manager: EntityManager, browser: NewBrowser, attempt: string): Promise<void> {
    const { customer, earlier, browserId, today } = browser;
    const ofEarlier = earlier ? await this.linksToCopy(manager, earlier, browser) : [];
    const known = ofEarlier.find(({ entity_id }) => entity_id === customer.entityId);
    const copies = ofEarlier.map((link) => ({ ...link, browser_id: browserId }));
    const links = known ? copies : [transferLink(browser, attempt), ...copies];
    if (!known) await this.devices.makeRoom(manager, 'link', customer.entityId, customer.lineage);
    browser.takeLimit();
    await insertRowsIn(manager, INSERT_BROWSER, [[browserId, sha256(browser.secret), 0]]);
    await insertLinks(
      manager,
      links.map((link) => (link.entity_id === customer.entityId ? { ...link, seen_day: today } : link)),
    );
    await this.replaceOldestCopies(manager, copies);
  }

  auditLinked({ customer, browserId }: NewBrowser, redemption: string): void {
    const subject = { kind: 'customer', id: customer.entityId } as const;
    const details = { browser: browserId, redemption };
    const actor = { kind: 'customer' } as const;
    const { organizationId } = customer;
    this.audit.record({ event: 'browser.linked', outcome: 'success', actor, subject, organizationId, details });
  }

  /**
   * The links of the earlier browser that the new one gets. A link to the transferred customer is among them if it came
   * in another way than by a transfer: a replay or the end of an ancestor does not end it.
   */
  private async linksToCopy(
    manager: EntityManager,
    { browserId, secretHash }: RecognizedBrowser,
    { customer, replace, today }: NewBrowser,
  ): Promise<LinkRow[]> {
    if ((await writeIn(manager, LOCK_BROWSER, [browserId, secretHash])) === 0) return [];
    const leading = await this.leadingLinks(manager, browserId, today);
    const ofScope = leading.find((link) => isInScope(link, customer));
    if (ofScope && ofScope.entity_id !== customer.entityId && !replace) throw OAuthError.identityConflict();
    const chosen = selectLinks(leading, customer);
    // `forget` and the purge change the rows of these customers too, so that a link that they end is not copied
    const ids = chosen.map(({ entity_id }) => entity_id);
    await raiseVersions(manager, 'customer', ids);
    const current = new Set((await this.leadingLinks(manager, browserId, today)).map(({ entity_id }) => entity_id));
    return chosen.filter(({ entity_id }) => current.has(entity_id));
  }

  private async leadingLinks(manager: EntityManager, browserId: string, today: number): Promise<LinkRow[]> {
    const links = (await linksOf(manager, [browserId], today)).filter(({ leads }) => leads !== 0);
    return withoutEndedAgents(links, this.denylist, manager);
  }

  private async replaceOldestCopies(manager: EntityManager, copies: LinkRow[]): Promise<void> {
    for (const [beganIn, ids] of entityIdsByBeginning(copies)) {
      const list = valueList(ids);
      const find = selectStatement<string[], LinkKey>(
        `SELECT entity_id, browser_id FROM browser_customer
          WHERE entity_id IN (${placeholdersFor(list)}) AND began_in = ? AND browser_id <> began_in
            AND organization_id IS NOT NULL ORDER BY entity_id, browser_id DESC`,
      );
      const found = await selectIn(manager, find, [...list, beganIn]);
      // the links of one customer follow each other, the newest copy first
      await unlink(
        manager,
        found.filter(({ entity_id }, index) => found[index - MAX_COPIES]?.entity_id === entity_id),
      );
    }
  }
}

/** A browser that is created for a transferred customer. Nothing is added to the earlier browser. */
export class NewBrowser {
  readonly secret = randomSecret('hex');

  constructor(
    readonly customer: TransferredCustomer,
    /** The browser that sent the request. */
    readonly earlier: RecognizedBrowser | undefined,
    /** Whether the customer may replace another one of the earlier browser. */
    readonly replace: boolean,
    readonly browserId: string,
    readonly today: number,
    /** Takes from the limit of new customers and browsers. */
    readonly takeLimit: () => void,
  ) {}

  /** The value of the cookie. */
  get secretCookie(): string {
    return secretCookieOf(this.browserId, this.secret);
  }
}

/** The link that a redemption gives. It ends with the redemption and with the tokens that the transfer descends from. */
function transferLink({ customer, browserId, today }: NewBrowser, redemption: string): LinkRow {
  const { entityId: entity_id, organizationId: organization_id, groupId: group_id } = customer;
  const { gen: generation, ancestors = [], ...rest } = customer.lineage;
  const lineage: LinkLineage = { ...rest, ancestors: [...ancestors, redemption] };
  return {
    ...{ browser_id: browserId, entity_id, organization_id, group_id, origin: 'transfer', began_in: browserId },
    ...{ generation, seen_day: today },
    ...{ root: rootOf(customer.lineage) ?? null, lineage: JSON.stringify(lineage) },
  };
}

function isInScope(link: LinkRow, { organizationId, groupId }: IdentityScope): boolean {
  return link.organization_id === organizationId && link.group_id === groupId;
}

/** The customer's own link, and the further links to copy. */
function selectLinks(leading: LinkRow[], customer: TransferredCustomer): LinkRow[] {
  const own = leading.filter((link) => link.entity_id === customer.entityId && link.origin !== 'transfer');
  return [...own, ...lastSeenOfEach(leading.filter((link) => !isInScope(link, customer)))];
}

/** The link seen last of each organization, then the second of each, and so on. So no organization displaces another. */
function lastSeenOfEach(links: LinkRow[]): LinkRow[] {
  const byOrganization = new Map<string, LinkRow[]>();
  for (const link of [...links].sort((one, other) => other.seen_day - one.seen_day)) {
    const ofOrganization = byOrganization.get(link.organization_id) ?? [];
    byOrganization.set(link.organization_id, [...ofOrganization, link]);
  }
  const selected: LinkRow[] = [];
  for (let turn = 0; turn < MAX_FURTHER_CUSTOMERS_PER_ORGANIZATION; turn++)
    for (const ofOrganization of byOrganization.values()) {
      const link = ofOrganization[turn];
      if (link && selected.length < MAX_FURTHER_CUSTOMERS) selected.push(link);
    }
  return selected;
}
