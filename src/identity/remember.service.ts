import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { CustomerSpace } from '../customer/customer.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { type RedeemableCode, TransferCodes } from '../redemption/transfer-codes.js';
import { BrowserRecognition, isIn } from '../session/browser-recognition.js';
import { Browsers } from '../session/browsers.js';
import { SessionLifetime } from '../session/session-lifetime.js';
import { BrowserReplacement } from './browser-replacement.js';
import { CustomerCreation } from './customer-creation.js';
import type { CandidateCredentials } from './identity-cookies.js';

interface RememberOptions {
  /** The identity cookies of the request. */
  candidates: CandidateCredentials | undefined;
  /** Whether the customer may replace another one of the browser. */
  replace: boolean;
  /** The lifetime of the access token. */
  ttlSeconds: number;
}

/** Lets browsers remember customers by a transfer (protocol §5.6). */
@Injectable()
export class RememberService {
  constructor(
    private readonly recognition: BrowserRecognition,
    private readonly browsers: Browsers,
    private readonly lifetime: SessionLifetime,
    private readonly codes: TransferCodes,
    private readonly creation: CustomerCreation,
    private readonly replacement: BrowserReplacement,
  ) {}

  /**
   * Redeems a transfer token for a new browser. A browser that leads to the customer already stays as it is.
   *
   * @returns the secret of the browser that leads to the customer
   * @throws OAuthError `identity_conflict` if the browser has another customer in the organization and group;
   * `invalid_grant` if the code has ended meanwhile; 429 if the customer has too many devices, or the network created
   * too many browsers
   */
  async remember(code: RedeemableCode, { candidates, replace, ttlSeconds }: RememberOptions): Promise<string> {
    const { entityId, organizationId, groupId, session } = code;
    const [earlier] = await this.recognition.leadingOf(candidates?.pairs ?? []);
    const knownId = earlier?.leading.find((known) => isIn(known, code))?.customer_id;
    if (earlier && knownId === entityId) {
      await this.codes.redeem(code, ttlSeconds);
      return earlier.secret;
    }
    if (knownId !== undefined && !replace) throw OAuthError.identityConflict();
    const copied = this.replacement.copiedFrom(earlier, organizationId);
    const browser = this.browsers.create();
    const takeLimit = this.creation.limitOnce();
    const device = {
      ...({ kind: 'transferred', browserId: browser.browserId, organizationId, groupId } as const),
      ...this.lifetime.beginningToday(organizationId, code.hasUser),
    };
    const lock = async (manager: EntityManager) => {
      const generations = new Map([[entityId, session.gen]]);
      const areLocked = await this.replacement.lockCustomersIn(manager, generations, copied);
      if (areLocked && earlier && !replace) await this.assertNoCustomer(manager, earlier.browserId, code);
      return areLocked;
    };
    const insertBrowser = async (manager: EntityManager) => {
      takeLimit();
      await this.replacement.insertIn(manager, browser, copied);
    };
    await this.codes.redeemForDevice(code, device, lock, insertBrowser);
    this.replacement.auditLinked(browser.browserId, code, { redemption: code.id });
    return browser.secret;
  }

  /** @throws OAuthError `identity_conflict` if a parallel request has created a customer for the earlier browser */
  private async assertNoCustomer(manager: EntityManager, browserId: string, space: CustomerSpace): Promise<void> {
    await this.browsers.lockIn(manager, browserId);
    const leading = await this.browsers.leadingSessionsIn(manager, [browserId]);
    if (leading.some((session) => isIn(session, space))) throw OAuthError.identityConflict();
  }
}
