import { Injectable } from '@nestjs/common';
import { Customers } from '../customer/customers.js';
import { Audit, party } from '../platform/audit/audit.js';
import { Database } from '../platform/database/database.js';
import { Browsers, type SessionRow } from '../session/browsers.js';
import type { CandidateCredentials } from './identity-cookies.js';

/** An organization, or one of its groups. */
interface ForgottenScope {
  organizationId: string;
  /** If omitted, all groups of the organization. */
  groupId: string | undefined;
}

/** Lets browsers no longer lead to the customers of an organization (protocol §4.13). */
@Injectable()
export class Forgetting {
  constructor(
    private readonly database: Database,
    private readonly audit: Audit,
    private readonly customers: Customers,
    private readonly browsers: Browsers,
  ) {}

  /** @returns whether no browser of the request leads to a customer any more */
  async forget(candidates: CandidateCredentials | undefined, scope: ForgottenScope): Promise<boolean> {
    const browsers = await this.browsers.leadingOf(candidates?.pairs ?? []);
    let leadsNowhere = true;
    for (const { browserId, leading } of browsers)
      leadsNowhere = (await this.forgetIn(browserId, leading, scope)) && leadsNowhere;
    return leadsNowhere;
  }

  /**
   * The tokens and devices of the customers stay. A request of this browser that creates a customer, or notes a visit,
   * comes before the transaction or finds neither session nor secret.
   *
   * @returns whether the browser leads to no customer any more
   */
  private async forgetIn(browserId: string, leading: SessionRow[], scope: ForgottenScope): Promise<boolean> {
    const { organizationId, groupId } = scope;
    const forgotten = leading.filter(
      (session) =>
        session.organization_id === organizationId && (groupId === undefined || session.group_id === groupId),
    );
    if (forgotten.length === 0 && leading.length > 0) return false;
    const leadsNowhere = await this.database.transaction(async (manager) => {
      // the first statements, as in each transaction about sessions; they also note the day for the purge
      for (const id of [...new Set(forgotten.map((session) => session.customer_id))].sort())
        await this.customers.writeIn(manager, id);
      if (!(await this.browsers.writeIn(manager, browserId))) return true;
      await this.browsers.detachIn(manager, browserId, organizationId, groupId);
      return (await this.browsers.deleteUnusedIn(manager, [browserId])).length > 0;
    });
    if (forgotten.length > 0) this.auditForgotten(browserId, forgotten.length, scope);
    return leadsNowhere;
  }

  private auditForgotten(browserId: string, customers: number, { organizationId, groupId }: ForgottenScope): void {
    const details = { customers, ...(groupId !== undefined && { group: groupId }) };
    this.audit.success('browser.forgotten', party('customer'), party('browser', browserId), {
      organizationId,
      details,
    });
  }
}
