import type { Rule, RuleSet } from '../grant-test-context.js';
import { OWN_ORGANIZATION } from '../kit-registry.js';

const groupOf = (group: string) => ({
  path: `/v2/customer/${OWN_ORGANIZATION}/${group}/token`,
  organizationId: OWN_ORGANIZATION,
});

/** The path of a group (protocol §4.2), which is only for grants that declare `groups`. The endpoint checks the group. */
export const groupRules: RuleSet = ({ groups }) => (groups ? [CUSTOMER_OF_GROUP] : []);

const CUSTOMER_OF_GROUP: Rule = {
  title: 'gives each group a customer of its own, because it declares `groups`',
  async check(context) {
    const { cookie } = await context.environment.newCustomer();
    const headers = { cookie, ...(await context.callerHeaders()) };
    const routes = [groupOf('sales'), groupOf('support'), {}];
    const customers = new Set<string>();
    for (const route of routes) {
      const { body } = await context.expectToken(await context.body(), { ...route, headers });
      customers.add(body.entity_id);
    }
    if (customers.size < routes.length)
      throw new Error('one customer in several groups; find or create it in the group `groupId` of the request');
  },
};
