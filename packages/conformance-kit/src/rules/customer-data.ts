import { CustomerErasure } from '@customer-authorization/service/testing-host';
import { GrantSubject } from '../grant-subject.js';
import { about, type Rule } from '../rule.js';
import { containsSecret } from '../secret-search.js';
import { columnsWith, hashesOf } from '../stored-cells.js';
import type { Subject } from '../subject.js';

/** They tell verifiers what has ended, and other services that the customer was erased, for some days. */
const TABLES_WITH_ERASED_IDS = ['ended', 'customer_event'];

/** What the extension has stored of customers. */
export const customerDataRules: Rule<Subject>[] = [
  {
    title: 'has an export of the customer without its secrets and their hashes',
    async check(subject) {
      const { customers, secrets } = await customersWithRows(subject);
      const authorization = `Bearer ${await subject.environment.agentToken('customers:manage')}`;
      for (const customer_id of customers) {
        const body = { customer_id };
        const response = await subject.service.post('/v2/customer/export', body, { authorization });
        if (response.status !== 200)
          throw new Error(`\`exportRows\` of a participant fails\n${subject.describe(response)}`);
        const texts = secrets.flatMap((secret) => [secret, ...hashesOf(secret)]);
        const shown = texts.find((text) => containsSecret(response.text, text));
        if (shown !== undefined) throw new Error(`the export has a secret or its hash: ${shown}; leave its column out`);
      }
    },
  },
  {
    title: 'leaves no row of an erased customer in any table',
    async check(subject) {
      const { customers } = await customersWithRows(subject);
      await erase(subject, customers);
      const hasId = (cell: string) => customers.some((id) => cell.includes(id));
      const columns = await columnsWith(subject.service, hasId);
      const left = columns.filter((column) => !TABLES_WITH_ERASED_IDS.includes(column.split('.')[0] ?? ''));
      if (left.length === 0) return;
      const solution = 'delete the rows in `onErase` of a participant in `participants`';
      throw new Error(`${left.join(', ')}: has the id of an erased customer; ${solution}`);
    },
  },
];

/** The customers for which a request has created rows: a used one and an unused one. */
async function customersWithRows(subject: Subject): Promise<{ customers: string[]; secrets: string[] }> {
  const used = await subject.observed();
  const { body } = await subject.expectSuccess(used.sent);
  const unused = await subject.observed();
  const ofToken: string[] = typeof body?.entity_id === 'string' ? [body.entity_id] : [];
  // the texts of a route's request may be the data of the customer
  const proofs = subject instanceof GrantSubject ? [used, unused] : [];
  const secrets = proofs.flatMap(({ sent }) => subject.secretsIn(sent));
  return { customers: [...new Set([...used.customers, ...ofToken, ...unused.customers])], secrets };
}

export async function erase({ service }: Subject, customers: string[]): Promise<void> {
  const erasure = service.application.get(CustomerErasure);
  for (const entityId of customers)
    await about('`onErase` of a participant', () => erasure.erase(entityId, { kind: 'operator' }));
}
