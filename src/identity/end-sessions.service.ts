import { Injectable } from '@nestjs/common';
import { IsBoolean } from 'class-validator';
import { Customers } from '../customer/customers.js';
import { CustomerEvents } from '../feed/customer-events.js';
import { operatorActor } from '../http/callers/operator-credentials.js';
import { Audit, party } from '../platform/audit/audit.js';
import type { AuditParty } from '../platform/audit/audit-event.js';
import { Database } from '../platform/database/database.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { Optional } from '../platform/validation/validation.js';
import { BrowserRecognition } from '../session/browser-recognition.js';
import { SessionEndings } from '../session/session-endings.js';
import { Sessions } from '../session/sessions.js';
import type { CandidateCredentials } from './identity-cookies.js';

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

/** Ends sessions of a customer for the customer, an agent or the operator (protocol §4.14 and §9.2). */
@Injectable()
export class EndSessionsService {
  constructor(
    private readonly database: Database,
    private readonly customers: Customers,
    private readonly sessions: Sessions,
    private readonly endings: SessionEndings,
    private readonly events: CustomerEvents,
    private readonly recognition: BrowserRecognition,
    private readonly audit: Audit,
  ) {}

  /** Ends all sessions of a customer. @returns whether the customer exists */
  async end({ entityId, organizationId, clientId, browsers, actor }: SessionsToEnd): Promise<boolean> {
    const exists = await this.database.transaction(async (manager) => {
      const generation = await this.customers.raiseGenerationIn(manager, entityId);
      if (generation === undefined) return false;
      await this.endings.endAllIn(manager, entityId, generation, browsers);
      await this.events.sessionsEndedIn(manager, { organizationId, entityId });
      return true;
    });
    if (!exists) return false;
    const facts = { organizationId, clientId, details: { browsers } };
    this.audit.success('sessions.ended', actor, party('customer', entityId), facts);
    return true;
  }

  /**
   * Whether a request may end all sessions of a customer. It may if one of its own browsers leads to the customer
   * without a transfer, or if no device does. A refresh token of the anonymous grant leads there without cookies, so
   * that the request may not: the client revokes the refresh token.
   */
  async mayEndBrowsers(candidates: CandidateCredentials | undefined, entityId: string): Promise<boolean> {
    const devices = await this.sessions.devicesOf(entityId);
    if (!devices.some(isWithoutTransfer)) return true;
    const browsers = await this.recognition.leadingOf(candidates?.pairs ?? []);
    const leading = browsers.flatMap((browser) => browser.leading);
    return leading.some((session) => session.customer_id === entityId && isWithoutTransfer(session));
  }

  /**
   * Ends the session of a browser for the operator, with its access tokens and all that was made with them.
   *
   * @returns whether the browser led to the customer
   */
  async endBrowser(entityId: string, browserId: string): Promise<boolean> {
    const session = (await this.sessions.devicesOf(entityId)).find(({ browser_id }) => browser_id === browserId);
    if (!session || (await this.endings.end(entityId, session.id, 'revoked')) === undefined) return false;
    const details = { browser: browserId };
    this.audit.success('browser.ended', operatorActor(), party('customer', entityId), { details });
    return true;
  }

  /** Ends a refresh token in the same way. @returns whether it led to the customer */
  async endRefreshToken(entityId: string, sessionId: string): Promise<boolean> {
    const devices = await this.sessions.devicesOf(entityId);
    if (!devices.some(({ id, browser_id }) => id === sessionId && browser_id === null)) return false;
    if ((await this.endings.end(entityId, sessionId, 'refresh_token_revoked')) === undefined) return false;
    this.audit.success('token.revoked', operatorActor(), party('token', sessionId));
    return true;
  }
}

function isWithoutTransfer({ kind }: { kind: string }): boolean {
  return kind === 'own' || kind === 'sign_in';
}
