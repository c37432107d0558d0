import { CustomerErasure, EndSessionsService } from 'customer-authorization-service/testing-host';
import { about } from '../cases.js';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { createProof, type Proof } from '../proof.js';
import { columnsWith } from '../stored-cells.js';
import { TOKEN } from '../test-environment.js';
import type { TestService } from '../test-service.js';

/** What the author of a route and a grant does, so that a proof ends with the token of its caller. */
export const STORE_PROOF_ID =
  'store the id of `proof()` of the caller, and return it as `proof` of the result of the grant';

/** Ends the tokens of customers and agents. Resolves to `false` if there is none. */
export async function endBearers(service: TestService, bearers: string[]): Promise<boolean> {
  const statuses: number[] = [];
  for (const authorization of bearers)
    for (const path of [TOKEN, '/v2/token'])
      statuses.push((await service.send('DELETE', path, { authorization })).status);
  return statuses.includes(200);
}

/** Says for verifiers what has ended, until the last token of the customer would have expired. */
const TABLE_WITH_ERASED_IDS = 'ended';

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
      const left = columns.filter((column) => column.split('.')[0] !== TABLE_WITH_ERASED_IDS);
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
  return { customers: [...new Set([...used.customers, body.entity_id, ...proof.customers])], proof };
}

export async function erase({ environment }: GrantTestContext, customers: string[]): Promise<void> {
  const erasure = environment.service.application.get(CustomerErasure);
  for (const entityId of customers) await erasure.erase(entityId, { kind: 'operator' });
}

/**
 * A proof ends with the token of the caller that created it (protocol §10.7), and with the sessions of its customer
 * (protocol §4.14). An agent proves itself by its bearer token.
 */
export const endingRules: RuleSet = ({ agentScope }, { endsWithCaller = true, endsWithSessions = true }) => [
  ...(endsWithCaller ? [ENDS_WITH_CALLER] : []),
  ...(agentScope === undefined && endsWithSessions ? [ENDS_WITH_SESSIONS] : []),
];

const OPT_OUT = 'if no bearer token in `valid` creates the proof, declare `endsWithCaller: false` in the test';

const ENDS_WITH_CALLER: Rule = {
  title: 'gives no token after the bearer token that created the proof has ended',
  async check(context) {
    const { parameters, bearers } = await createProof(context);
    if (!(await endBearers(context.environment.service, bearers)))
      throw new Error(`\`valid\` sends no bearer token to the service; ${OPT_OUT}`);
    const { status, text, body } = await context.send(parameters);
    if (status === 400 && body.error === 'invalid_grant') return;
    throw new Error(`not refused with invalid_grant; ${STORE_PROOF_ID}; ${OPT_OUT}\nresponse: ${status} ${text}`);
  },
};

const ENDS_WITH_SESSIONS: Rule = {
  title: 'gives no token for a customer whose sessions ended after the proof was created',
  async check(context) {
    const { customers, proof } = await customersOfProof(context);
    await endSessions(context, customers);
    const { body } = await context.send(proof.parameters);
    if (!customers.includes(body.entity_id)) return;
    const solution = 'compare the stored `generation` with that of `CustomerService.find`';
    const optOut = 'if the proof names something else, such as a phone, declare `endsWithSessions: false` in the test';
    throw new Error(`a token after the sessions of the customer ended; ${solution}; ${optOut}`);
  },
};

async function endSessions({ environment }: GrantTestContext, customers: string[]): Promise<void> {
  const { service, organizationId } = environment;
  const sessions = service.application.get(EndSessionsService, { strict: false });
  const actor = { kind: 'operator', id: 'kit' } as const;
  for (const entityId of customers) await sessions.end({ entityId, organizationId, browsers: false, actor });
}
