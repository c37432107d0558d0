import { Injectable } from '@nestjs/common';
import { Customers } from '../customer/customers.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Database } from '../platform/database/database.js';
import { BrowserRecognition, type LeadingBrowser } from '../session/browser-recognition.js';
import { Browsers } from '../session/browsers.js';
import { Sessions } from '../session/sessions.js';
import type { CandidateCredentials } from './identity-cookies.js';

/** An organization, or one of its groups. */
interface ForgettingSpace {
  organizationId: string;
  /** If omitted, all groups of the organization. */
  groupId: string | undefined;
}

/** Lets browsers forget customers (protocol §4.13). */
@Injectable()
export class ForgetService {
  constructor(
    private readonly database: Database,
    private readonly customers: Customers,
    private readonly recognition: BrowserRecognition,
    private readonly browsers: Browsers,
    private readonly sessions: Sessions,
    private readonly audit: Audit,
  ) {}

  /**
   * Lets the browsers of a request no longer lead to the customers of an organization.
   *
   * @returns whether no browser of the request leads to a customer any more
   */
  async forget(candidates: CandidateCredentials | undefined, space: ForgettingSpace): Promise<boolean> {
    const browsers = await this.recognition.leadingOf(candidates?.pairs ?? []);
    let leadsNowhere = true;
    for (const browser of browsers) leadsNowhere = (await this.forgetInBrowser(browser, space)) && leadsNowhere;
    return leadsNowhere;
  }

  /**
   * The tokens and devices of the customers stay. A request of this browser that creates a customer, or notes a visit,
   * comes before the transaction or finds neither session nor secret.
   *
   * @returns whether the browser leads to no customer any more
   */
  private async forgetInBrowser({ browserId, leading }: LeadingBrowser, space: ForgettingSpace): Promise<boolean> {
    const { organizationId, groupId } = space;
    const forgotten = leading.filter(
      (session) =>
        session.organization_id === organizationId && (groupId === undefined || session.group_id === groupId),
    );
    if (forgotten.length === 0 && leading.length > 0) return false;
    const leadsNowhere = await this.database.transaction(async (manager) => {
      // the first statements, as in each transaction about sessions; they also note the day for the purge
      for (const id of [...new Set(forgotten.map((session) => session.customer_id))].sort())
        await this.customers.lockIn(manager, id);
      if (!(await this.browsers.lockIn(manager, browserId))) return true;
      await this.sessions.detachIn(manager, { browserId, organizationId, ...(groupId !== undefined && { groupId }) });
      return (await this.browsers.deleteUnusedIn(manager, [browserId])).length > 0;
    });
    if (forgotten.length > 0) this.auditForgotten(browserId, forgotten.length, space);
    return leadsNowhere;
  }

  private auditForgotten(browserId: string, customers: number, { organizationId, groupId }: ForgettingSpace): void {
    const details = { customers, ...(groupId !== undefined && { group: groupId }) };
    const browser = party('browser', browserId);
    this.audit.success('browser.forgotten', party('customer'), browser, { organizationId, details });
  }
}
