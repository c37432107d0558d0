import { about } from '../cases.js';
import type { GrantKit } from '../grant-kit.js';
import type { Rule, RuleSet } from '../grant-test-context.js';
import { ADDRESS } from '../secret-search.js';
import { erase } from './endings.js';

const STORE_ID =
  'store the `entity_id` with the HMAC of the address, and call `CustomerService.createIfAbsent` with the stored id';
const DELETE_ID =
  'delete the stored `entity_id` in `onErase`, or if `CustomerService.createIfAbsent` resolves to undefined';

/** The same person is the same customer. */
export const sameCustomerRules: RuleSet = (_declared, { again }) => {
  if (again) return [sameCustomer(again)];
  return again === undefined ? [DECLARES_AGAIN] : [];
};

const DECLARES_AGAIN: Rule = {
  title: 'has a test that declares `again`, if a parameter is an address',
  async check(context) {
    const parameters = await context.body();
    const names = context.ownParameters.filter((name) => ADDRESS.test(`${parameters[name]}`));
    if (names.length === 0) return;
    const declaration = 'declare `again`, which returns another proof for the same address';
    throw new Error(`${names}: ${declaration}, or \`again: false\` if each proof has a customer of its own`);
  },
};

function sameCustomer(again: Exclude<GrantKit['again'], false | undefined>): Rule {
  return {
    title: 'gives tokens of one customer for two proofs of a person, because the test declares `again`',
    async check(context) {
      const earlier = await context.body();
      const customerOf = async (own: object) => {
        const { body } = await context.expectToken(context.withCommon(own));
        return `${body.entity_id}`;
      };
      const next = async () => customerOf(await about('`again`', async () => again(earlier, context.environment)));
      const customer = await customerOf(earlier);
      if ((await next()) !== customer) throw new Error(`another customer for the same person; ${STORE_ID}`);
      await erase(context, [customer]);
      await about(`after the erasure of its customer; ${DELETE_ID}`, next);
    },
  };
}
