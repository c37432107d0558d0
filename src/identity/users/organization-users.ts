import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { type Customer, type CustomerCreator, spaceOf } from '../../customer/customer.js';
import { type CustomerRow, Customers, USER_KEYS, userKeyOf } from '../../customer/customers.js';
import { CustomerEvents } from '../../feed/customer-events.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Audit, party } from '../../platform/audit/audit.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { uuidv7 } from '../../platform/uuid.js';
import { SessionEndings } from '../../session/session-endings.js';
import { BrowserReplacement } from '../browser-replacement.js';
import { CustomerCreation } from '../customer-creation.js';
import type { BrowserCredentials, CandidateCredentials } from '../identity-cookies.js';
import { isSignedInTo, type SignedInBrowser, type SigningBrowser, UserSignIns } from './user-sign-ins.js';

/** The browser that signs a user in (protocol §5.6). */
export interface UserSignIn {
  /** The identity cookies of the request. */
  credentials: CandidateCredentials | undefined;
  /** Whether the customer that the browser created itself becomes a new user's, or is linked to a known user. */
  link: boolean;
}

/** A request for the customer of a user of an organization. */
export interface UserRequest {
  organizationId: string;
  /** The organization's id of the user, byte for byte. */
  userId: string;
  /** Only if the browser is to lead to the customer. The limit of new customers then does not count. */
  signIn?: UserSignIn | undefined;
  /** The creator of the customer in the audit event. */
  creator: CustomerCreator;
}

/** The customer of a user. */
export interface UserCustomer extends Customer {
  /** Whether this request created the user. Of parallel requests one did. */
  created: boolean;
  /** The visitor's customer that this request has linked to the user, once and for all. */
  linkedId?: string;
  /** The values of the identity cookies after a sign-in. */
  credentials?: BrowserCredentials;
}

/**
 * A request reads again after a parallel request has created the user. Only several erasures at once reach this limit.
 */
const MAX_READS = 3;

/** A request, and what was read for it. */
interface ReadRequest {
  request: UserRequest;
  key: string;
  /** The browser that signs the user in. */
  browser: SigningBrowser | undefined;
  /** The customer that this browser created itself, if the request asks to link it, and it can be linked. */
  visitor: CustomerRow | undefined;
  known: CustomerRow | undefined;
}

interface StoredUser {
  entityId: string;
  generation: number;
  created: boolean;
  /** The visitor's customer, if it became the user's or was linked to the user. */
  linkedId?: string | undefined;
  signedIn?: SignedInBrowser;
}

/** Finds or creates the customer of a user of an organization, in one transaction with the key of the user. */
@Injectable()
export class OrganizationUsers {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly customers: Customers,
    private readonly replacement: BrowserReplacement,
    private readonly signIns: UserSignIns,
    private readonly endings: SessionEndings,
    private readonly events: CustomerEvents,
    private readonly creation: CustomerCreation,
    private readonly clock: Clock,
    private readonly audit: Audit,
  ) {}

  /**
   * The customer of a user. A known user costs one SELECT, unless the request signs a browser in. A new user gets the
   * browser's customer if the request links it and it belongs to no user yet, else a new customer.
   *
   * @throws OAuthError 503 if the response to the COMMIT was lost; the change may have happened
   */
  async customerOf(request: UserRequest): Promise<UserCustomer> {
    const takeLimit = this.creation.limitOnce();
    for (let reads = 0; reads < MAX_READS; reads++) {
      const read = await this.read(request);
      if (read.known && !request.signIn) return userOf(read.known);
      const stored = await this.store(read, takeLimit);
      if (stored) return this.finish(request, stored);
    }
    throw OAuthError.unavailable();
  }

  /** The `entity_id` of a user's customer, also of one that is being erased; `undefined` if the user is unknown. */
  async find(organizationId: string, userId: string): Promise<string | undefined> {
    return (await this.customers.findByKey(userKeyOf(organizationId, userId)))?.entity_id;
  }

  private async read(request: UserRequest): Promise<ReadRequest> {
    const { organizationId, userId, signIn } = request;
    const key = userKeyOf(organizationId, userId);
    const known = await this.customers.findByKey(key);
    if (known && known.erased_at !== null) throw OAuthError.unavailable();
    if (!signIn) return { request, key, known, browser: undefined, visitor: undefined };
    const browser = await this.signIns.browserOf(signIn.credentials, organizationId);
    const visitorId = signIn.link && browser?.session?.kind === 'own' ? browser.session.customer_id : undefined;
    const visitor = visitorId === undefined ? undefined : await this.customers.find(visitorId);
    // the customer of another user is never linked or reassigned, because users may share a browser
    const isFree = visitor && !visitor.has_user && visitor.linked_to === null && visitor.erased_at === null;
    return { request, key, known, browser, visitor: isFree ? visitor : undefined };
  }

  /** @returns `undefined` if a parallel request has created or erased the user, or has changed the customers */
  private async store(read: ReadRequest, takeLimit: () => void): Promise<StoredUser | undefined> {
    try {
      return await this.database.transaction((manager) => this.storeIn(manager, read, takeLimit));
    } catch (error) {
      if (error instanceof UserExistsError) return undefined;
      throw error;
    }
  }

  /**
   * Creates the user, links the visitor and signs the browser in. The transaction writes the rows of the customers
   * first.
   *
   * @throws UserExistsError, which rolls the transaction back
   */
  private async storeIn(
    manager: EntityManager,
    read: ReadRequest,
    takeLimit: () => void,
  ): Promise<StoredUser | undefined> {
    const { request, browser, visitor, known } = read;
    const { organizationId, signIn } = request;
    const isSignedIn = known !== undefined && isSignedInTo(browser, known);
    const copied = isSignedIn ? undefined : this.replacement.copiedFrom(browser, organizationId);
    const written = [known, visitor].filter((row) => row !== undefined);
    const generations = new Map(written.map((row) => [row.entity_id, row.generation]));
    if (!(await this.replacement.lockCustomersIn(manager, generations, copied))) return undefined;
    const recognized = visitor ?? (isSignedIn ? known : undefined);
    // the browser may have forgotten the customer meanwhile, or the operator may have ended its session
    if (recognized && !(await this.signIns.leadsIn(manager, browser, recognized.entity_id))) return undefined;
    const user = known
      ? await this.linkKnownIn(manager, known, visitor)
      : await this.createIn(manager, read, signIn ? undefined : takeLimit);
    if (!user || !signIn) return user;
    const signedIn = await this.signIns.signInIn(manager, { ...user, organizationId }, browser, copied);
    return { ...user, signedIn };
  }

  private async linkKnownIn(
    manager: EntityManager,
    known: CustomerRow,
    visitor: CustomerRow | undefined,
  ): Promise<StoredUser> {
    const user = { entityId: known.entity_id, generation: known.generation, created: false };
    if (!visitor) return user;
    const linkedId = visitor.entity_id;
    const generation = await this.customers.linkIn(manager, linkedId, known.entity_id);
    if (generation === undefined) return user;
    await this.endings.endAllIn(manager, linkedId, generation, true);
    await this.events.linkedIn(manager, { organizationId: known.organization_id, entityId: linkedId }, user.entityId);
    return { ...user, linkedId };
  }

  /**
   * A visitor's customer becomes the user's: what a person has kept of the visitor must not lead to the user.
   *
   * @param takeLimit absent for a sign-in, which does not count
   */
  private async createIn(
    manager: EntityManager,
    { request: { organizationId, creator }, key, visitor }: ReadRequest,
    takeLimit: (() => void) | undefined,
  ): Promise<StoredUser | undefined> {
    const visitorId = visitor?.entity_id;
    if (visitorId !== undefined) {
      if (!(await this.customers.becomeUserIn(manager, visitorId))) return undefined;
      if (!(await this.customers.insertKeyIn(manager, key, visitorId, USER_KEYS))) throw new UserExistsError();
      const generation = (await this.customers.raiseGenerationIn(manager, visitorId)) as number;
      await this.endings.endAllIn(manager, visitorId, generation, true);
      await this.events.becameUserIn(manager, { organizationId, entityId: visitorId });
      return { entityId: visitorId, generation, created: true, linkedId: visitorId };
    }
    const entityId = uuidv7(this.clock.now());
    const generation = await this.customers.insertIn(manager, entityId, spaceOf(organizationId), creator, true);
    if (!(await this.customers.insertKeyIn(manager, key, entityId, USER_KEYS))) throw new UserExistsError();
    // of parallel requests, only the one that creates the user counts
    takeLimit?.();
    return { entityId, generation, created: true };
  }

  private finish(
    { organizationId, creator }: UserRequest,
    { entityId, generation, created, linkedId, signedIn }: StoredUser,
  ): UserCustomer {
    const user = party('customer', entityId);
    if (linkedId !== undefined)
      this.audit.success('identity.linked', party('customer'), user, { organizationId, details: { linked: linkedId } });
    else if (created) this.creation.auditCreated(creator, entityId, organizationId);
    const isMerged = linkedId !== undefined && linkedId !== entityId;
    const merged = isMerged ? { linkedId } : {};
    const customer = { entityId, organizationId, groupId: '', generation, hasUser: true, created, ...merged };
    if (!signedIn) return customer;
    const { secret, sessionId, epoch, createdId } = signedIn;
    if (createdId !== undefined) this.replacement.auditLinked(createdId, customer, { sign_in: sessionId });
    const session = { gen: generation, sid: sessionId, ep: epoch };
    return { ...customer, session, credentials: { entityId, secret } };
  }
}

/** A parallel request has created the user. */
class UserExistsError extends Error {}

function userOf(known: CustomerRow): UserCustomer {
  const { entity_id: entityId, organization_id: organizationId, group_id: groupId, generation } = known;
  return { entityId, organizationId, groupId, generation, hasUser: true, created: false };
}
