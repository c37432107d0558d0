import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { rootOf, type TokenLineage } from '../access-token/token-lineage.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock, dayOf } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import type { BrowserLink } from './browser-link.entity.js';
import { BrowserRecognition } from './browser-recognition.js';
import type { IdentityScope } from './customer.js';
import { CustomerDevices } from './customer-devices.js';
import { FIND_CUSTOMER } from './customer-statements.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { LinkLifetime } from './link-lifetime.js';
import { type LinkLineage, newLink } from './links.js';
import { insertBrowser, lastSeenOfEach, linksOfEarlier, type NewBrowser, newBrowser } from './new-browsers.js';
import { NewCustomers } from './new-customers.js';

/** The transferred customer. */
interface TransferredCustomer extends IdentityScope {
  entityId: string;
  lineage: TokenLineage;
  /** The last day of the link, as after a sign-in, if the customer is a user's. */
  signedInUntil: number | null;
}

/** A browser that is created for a transferred customer. */
export interface RememberedBrowser {
  customer: TransferredCustomer;
  browser: NewBrowser;
  /** Whether the customer may replace another one of the earlier browser. */
  replace: boolean;
  /** Takes from the limit of new customers and browsers. */
  takeLimit: () => void;
}

/** Creates browsers that lead to a customer of another device (protocol §5.6). */
@Injectable()
export class Remember {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly recognition: BrowserRecognition,
    private readonly lifetime: LinkLifetime,
    private readonly newCustomers: NewCustomers,
    private readonly devices: CustomerDevices,
  ) {}

  /**
   * Reads and checks before the redemption, so that an error leaves the code usable.
   *
   * @param code `hasUser`: as read before the redemption. A customer that becomes a user's ends its codes
   * @param candidates the identity cookies of the request
   * @param replace whether the customer may replace another one of the browser
   * @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group
   */
  async prepare(
    code: { subject: string; organizationId: string; lineage: TokenLineage; hasUser: boolean },
    candidates: CandidateCredentials | undefined,
    replace: boolean,
  ): Promise<RememberedBrowser> {
    const { subject: entityId, organizationId, lineage, hasUser } = code;
    const [row] = await this.database.select(FIND_CUSTOMER, [entityId]);
    if (!row || row.group_id === null) throw OAuthError.invalidGrant('code: its customer was erased');
    const now = this.clock.now();
    const signedInUntil = hasUser ? this.lifetime.signedInUntil(organizationId, dayOf(now)) : null;
    const customer = { organizationId, groupId: row.group_id, entityId, lineage, signedInUntil };
    const earlier = await this.recognition.find(candidates, customer);
    const knownId = earlier?.customer?.entityId;
    if (knownId !== undefined && knownId !== entityId && !replace) throw OAuthError.identityConflict();
    return { customer, browser: newBrowser(earlier, now), replace, takeLimit: this.newCustomers.limitOnce() };
  }

  /**
   * Creates the new browser in the transaction of the redemption, which has already changed the row of the customer. Of
   * two transactions that change the links of one browser or customer, the second one reads what the first one has
   * changed.
   *
   * @throws OAuthError `identity_conflict` if a parallel request has created another customer for the earlier browser;
   * `temporarily_unavailable` if the network created too many customers and browsers
   */
  async store(manager: EntityManager, remembered: RememberedBrowser, attempt: string): Promise<void> {
    const { customer, browser, replace, takeLimit } = remembered;
    const choose = (links: BrowserLink[]) => selectLinks(links, customer);
    const { leading, copies } = await linksOfEarlier(manager, browser, choose);
    const ofScope = leading.find((link) => isInScope(link, customer));
    if (ofScope && ofScope.entityId !== customer.entityId && !replace) throw OAuthError.identityConflict();
    const known = copies.find(({ entityId }) => entityId === customer.entityId);
    if (known) known.seenDay = browser.today;
    else await this.devices.makeRoom(manager, 'link', customer.entityId, customer.lineage);
    takeLimit();
    await insertBrowser(manager, browser, copies, known ? undefined : transferLink(customer, browser, attempt));
  }
}

/** The link that a redemption gives. It ends with the redemption and with the tokens that the transfer descends from. */
function transferLink(
  customer: TransferredCustomer,
  { browserId, today }: NewBrowser,
  redemption: string,
): BrowserLink {
  const { gen: generation, ancestors = [], ...rest } = customer.lineage;
  const lineage: LinkLineage = { ...rest, ancestors: [...ancestors, redemption] };
  return newLink(browserId, customer, {
    ...{ origin: 'transfer', generation, seenDay: today, signedInUntil: customer.signedInUntil },
    ...{ root: rootOf(customer.lineage) ?? null, lineage },
  });
}

function isInScope(link: BrowserLink, { organizationId, groupId }: IdentityScope): boolean {
  return link.organizationId === organizationId && link.groupId === groupId;
}

/**
 * The customer's own link, and the further links to copy. These include a link to the transferred customer that is not
 * from a transfer, because a replay or the end of an ancestor does not end such a link.
 */
function selectLinks(leading: BrowserLink[], customer: TransferredCustomer): BrowserLink[] {
  const own = leading.filter((link) => link.entityId === customer.entityId && link.origin !== 'transfer');
  return [...own, ...lastSeenOfEach(leading.filter((link) => !isInScope(link, customer)))];
}
