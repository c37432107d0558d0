import type { TokenLineage } from '../access-token/token-lineage.js';
import type { IdentityScope } from './identity-scope.js';
import type { LedCustomer } from './led-customers.js';
import { lineageOfLink } from './link-lineage.js';

/** The transferred customer, as far as a link needs it. */
export interface TransferredCustomer extends IdentityScope {
  entityId: string;
  lineage: TokenLineage;
  linkGeneration: number;
}

/** The link that a redemption gives. It ends with the redemption and with the tokens that the transfer descends from. */
export function linkOfTransfer(customer: TransferredCustomer, redemption: string, today: number): LedCustomer {
  const { act, ...lineage } = lineageOfLink(customer.lineage, redemption);
  return {
    ...unendingLink(customer, today),
    redemption,
    lineage: JSON.stringify({ ...lineage, ...(act && { act }) }),
    agent_id: act?.gen === undefined ? null : act.sub,
    agent_generation: act?.gen ?? null,
  };
}

/** The tokens and families with which the link of a redemption ends. */
export function ancestorsOf({ lineage }: TransferredCustomer, redemption: string): string[] {
  return [...new Set(lineageOfLink(lineage, redemption).ancestors)];
}

/** A link that no revocation ends. */
export function unendingLink(customer: TransferredCustomer, today: number): LedCustomer {
  const { entityId, organizationId, groupId, linkGeneration } = customer;
  return {
    ...{ entity_id: entityId, organization_id: organizationId, group_id: groupId },
    ...{ generation: linkGeneration, scope_seen_day: today },
    ...{ redemption: null, lineage: null, agent_id: null, agent_generation: null },
  };
}
