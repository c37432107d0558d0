import { CustomerErasure } from 'customer-authorization-service/testing-host';
import { about } from '../cases.js';
import type { GrantTestContext } from '../grant-test-context.js';
import { createProof, type Proof } from '../proof.js';
import type { RuleSet } from '../rule.js';
import { columnsWith } from '../stored-cells.js';

/**
 * The service's own tables that have the id of an erased customer. Codes and revocations expire by themselves, and the
 * id of an erased customer is never used again.
 */
const TABLES_WITH_ERASED_IDS = ['customer', 'browser_customer', 'one_time_code', 'revocation'];

/** An erased customer gets no token, and its data is deleted (protocol §5.8). */
export const customerErasureRules: RuleSet = () => [
  {
    title: 'gives no token for a customer that was erased after the proof was created',
    async check(context) {
      const { customers, proof } = await customersOfProof(context);
      await erase(context, customers);
      await about('after the erasure of its customer', () => context.send(proof.parameters));
      await about('`valid` after the erasure of earlier customers; create a customer in each call', async () =>
        context.expectToken(await context.body()),
      );
    },
  },
  {
    title: 'leaves no row of an erased customer in any table',
    async check(context) {
      const { customers } = await customersOfProof(context);
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
async function customersOfProof(context: GrantTestContext): Promise<{ customers: string[]; proof: Proof }> {
  const used = await createProof(context);
  const { body } = await context.expectToken(used.parameters);
  const proof = await createProof(context);
  return { customers: [...used.customers, body.entity_id, ...proof.customers], proof };
}

async function erase({ environment }: GrantTestContext, customers: string[]): Promise<void> {
  const erasure = environment.service.application.get(CustomerErasure);
  for (const entityId of customers) await erasure.erase(entityId, { kind: 'operator' });
}
