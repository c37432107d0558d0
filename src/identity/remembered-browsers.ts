import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { CustomerSpace } from '../customer/customer.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Audit } from '../platform/audit/audit.js';
import { Database } from '../platform/database/database.js';
import { Browsers, isIn } from '../session/browsers.js';
import { Devices } from '../session/devices.js';
import { SessionLifetime } from '../session/session-lifetime.js';
import { Sessions } from '../session/sessions.js';
import { LostCodeError, type RedeemableCode, TransferCodes } from '../session/transfer-codes.js';
import { auditBrowserLinked } from './browser-audit.js';
import { CustomerCreation } from './customer-creation.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { NewBrowsers } from './new-browsers.js';

interface RememberOptions {
  /** The identity cookies of the request. */
  candidates: CandidateCredentials | undefined;
  /** Whether the customer may replace another one of the browser. */
  replace: boolean;
  /** The lifetime of the access token. */
  ttlSeconds: number;
}

/** Lets a browser remember a transferred customer (protocol §5.6). */
@Injectable()
export class RememberedBrowsers {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly browsers: Browsers,
    private readonly newBrowsers: NewBrowsers,
    private readonly sessions: Sessions,
    private readonly devices: Devices,
    private readonly codes: TransferCodes,
    private readonly creation: CustomerCreation,
    private readonly lifetime: SessionLifetime,
  ) {}

  /**
   * Redeems a transfer token for a new browser. A browser that leads to the customer already stays as it is.
   *
   * @returns the secret of the browser that leads to the customer
   * @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group;
   * `invalid_grant` if the code has ended meanwhile; 429 if the customer has too many devices, or the network created too
   * many browsers
   */
  async remember(code: RedeemableCode, { candidates, replace, ttlSeconds }: RememberOptions): Promise<string> {
    const { entityId, organizationId, groupId, session } = code;
    const [earlier] = await this.browsers.leadingOf(candidates?.pairs ?? []);
    const knownId = earlier?.leading.find((known) => isIn(known, code))?.customer_id;
    if (earlier && knownId === entityId) {
      await this.codes.redeem(code, ttlSeconds);
      return earlier.secret;
    }
    if (knownId !== undefined && !replace) throw OAuthError.identityConflict();
    const copies = this.newBrowsers.copiesOf(earlier, organizationId);
    const browser = this.browsers.create();
    const takeLimit = this.creation.limitOnce();
    const seenDay = this.lifetime.today();
    const days = { seenDay, signedInDay: code.hasUser ? seenDay : null };
    const device = {
      ...({ kind: 'transferred', browserId: browser.browserId, organizationId, groupId } as const),
      ...{ ...days, expiresAt: this.lifetime.expiryOf(organizationId, days) },
    };
    await this.codes.redeemForDevice(code, () =>
      this.database.transaction(async (manager) => {
        const generations = new Map([[entityId, session.gen]]);
        if (!(await this.newBrowsers.writeCustomersIn(manager, generations, copies))) throw new LostCodeError();
        if (earlier && !replace) await this.assertNoCustomer(manager, earlier.browserId, code);
        await this.devices.makeRoom(manager, await this.sessions.allOf(manager, entityId));
        takeLimit();
        await this.newBrowsers.insertIn(manager, browser, copies);
        await this.codes.redeemIn(manager, code, device);
      }),
    );
    auditBrowserLinked(this.audit, browser.browserId, code, { redemption: code.id });
    return browser.secret;
  }

  /** @throws OAuthError `identity_conflict` if a parallel request has created a customer for the earlier browser */
  private async assertNoCustomer(manager: EntityManager, browserId: string, space: CustomerSpace): Promise<void> {
    await this.browsers.writeIn(manager, browserId);
    const leading = await this.browsers.leadingSessionsIn(manager, browserId);
    if (leading.some((session) => isIn(session, space))) throw OAuthError.identityConflict();
  }
}
