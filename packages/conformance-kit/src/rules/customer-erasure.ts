import { CustomerErasure } from 'customer-authorization-service/testing-host';
import type { GrantTestContext } from '../grant-test-context.js';
import { createProof } from '../proof.js';
import type { RuleSet } from '../rule.js';
import { columnsWith } from '../stored-cells.js';

/**
 * The service's own tables that have the id of an erased customer. Codes and revocations expire by themselves, and the
 * id of an erased customer is never used again.
 */
const TABLES_WITH_ERASED_IDS = ['customer', 'browser_customer', 'one_time_code', 'revocation'];

/** The data of an erased customer is deleted (protocol §5.8). The token endpoint gives it no token. */
export const customerErasureRules: RuleSet = () => [
  {
    title: 'leaves no row of an erased customer in any table',
    async check(context) {
      const customers = await customersOfProof(context);
      await erase(context, customers);
      const columns = await columnsWith(context.environment.service, (cell) =>
        customers.some((id) => cell.includes(id)),
      );
      const left = columns.filter((column) => !TABLES_WITH_ERASED_IDS.includes(column.split('.')[0] ?? ''));
      if (left.length > 0) {
        const solution = 'delete the rows in `onErase` of a CustomerDataParticipant';
        throw new Error(`${left.join(', ')}: has the id of an erased customer; ${solution}`);
      }
    },
  },
];

/** A new proof, with the customers that it may belong to: those created for it, and that of an earlier token. */
async function customersOfProof(context: GrantTestContext): Promise<string[]> {
  const used = await createProof(context);
  const { body } = await context.expectToken(used.parameters);
  const proof = await createProof(context);
  return [...used.customers, body.entity_id, ...proof.customers];
}

async function erase({ environment }: GrantTestContext, customers: string[]): Promise<void> {
  const erasure = environment.service.application.get(CustomerErasure);
  for (const entityId of customers) await erasure.erase(entityId, { kind: 'operator' });
}
