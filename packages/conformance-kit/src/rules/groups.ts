import type { Rule, RuleSet } from '../grant-test-context.js';
import { FOREIGN_ORGANIZATION, OWN_ORGANIZATION, SHARED_ORGANIZATION, SHARED_SITE } from '../kit-registry.js';

const groupOf = (organizationId: string, group: string) => ({
  path: `/v2/customer/${organizationId}/${group}/token`,
  organizationId,
});

/** The path of a group (protocol §4.2), which is only for grants that declare `groups`. */
export const groupRules: RuleSet = ({ groups }) => (groups ? GROUP_RULES : [WITHOUT_GROUPS]);

const WITHOUT_GROUPS: Rule = {
  title: 'is not available on the path of a group, because it does not declare `groups`',
  async check(context) {
    const expected = { error: 'invalid_request', hint: /^grant_type: not supported by the route of a group$/ };
    await context.refuses(expected, groupOf(OWN_ORGANIZATION, 'sales'));
  },
};

const GROUP_RULES: Rule[] = [
  {
    title: 'gives each group a customer of its own, because it declares `groups`',
    async check(context) {
      const { cookie } = await context.environment.newCustomer();
      const headers = { cookie, ...(await context.callerHeaders()) };
      const routes = [groupOf(OWN_ORGANIZATION, 'sales'), groupOf(OWN_ORGANIZATION, 'support'), {}];
      const customers = new Set<string>();
      for (const route of routes) {
        const { body } = await context.expectToken(await context.body(), { ...route, headers });
        customers.add(body.entity_id);
      }
      if (customers.size < routes.length)
        throw new Error('one customer in several groups; find or create it in the group `groupId` of the request');
    },
  },
  {
    title: 'takes the organization from the path of the group and refuses another one in the body',
    async check(context) {
      const { organization_id: _removed, ...others } = await context.body();
      await context.expectToken(others, groupOf(OWN_ORGANIZATION, 'sales'));
      const expected = { error: 'invalid_request', hint: /^organization_id: must equal the organization of the path$/ };
      const parameters = { organization_id: OWN_ORGANIZATION };
      await context.refuses(expected, { parameters, ...groupOf(FOREIGN_ORGANIZATION, 'sales') });
    },
  },
  {
    title: 'refuses an invalid group id',
    async check(context) {
      const expected = { error: 'invalid_request', hint: /^group_id: / };
      await context.refusesEach(['a b', 'ä', 'x'.repeat(65), 'a.b', '%00'], expected, (group) =>
        groupOf(OWN_ORGANIZATION, encodeURI(group)),
      );
    },
  },
  {
    title: 'is refused on a group path if the groups of the organization share one identity',
    async check(context) {
      const parameters = { client_id: SHARED_SITE, organization_id: SHARED_ORGANIZATION };
      const expected = { error: 'unauthorized_client', hint: /^group_id: / };
      await context.refuses(expected, { parameters, ...groupOf(SHARED_ORGANIZATION, 'sales') });
    },
  },
];
