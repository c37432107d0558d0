import { FOREIGN, HOME, SHARED, SHARED_SITE } from '../kit-registry.js';
import { about, type Rule, type RulesOn } from '../rule.js';
import type { Trial } from '../trial.js';

const groupOf = (organizationId: string, group: string) => ({
  path: `/v2/customer/${organizationId}/${group}/token`,
  organizationId,
});

/** The address of 4.2, which is a grant's only where it declares `groups`. */
export const groupRules: RulesOn = ({ groups }) => (groups ? OF_GROUPS : [WITHOUT_GROUPS]);

const WITHOUT_GROUPS: Rule = {
  title: 'is not at the address of a group, which it does not declare',
  async check(trial) {
    const refusal = { error: 'invalid_request', hint: /^grant_type: not at the address of a group$/ };
    await trial.refused(refusal, await trial.body(), groupOf(HOME, 'sales'));
  },
};

const OF_GROUPS: Rule[] = [
  {
    title: 'gives a browser a customer of its own in each group, as it declares',
    async check(trial) {
      const { cookie } = await trial.house.newCustomer();
      const headers = { cookie, ...(await trial.callerHeaders()) };
      const places = [groupOf(HOME, 'sales'), groupOf(HOME, 'support'), {}];
      const customers = new Set<string>();
      for (const place of places) {
        const { body } = await trial.granted(await trial.body(), { ...place, headers });
        customers.add(body.entity_id);
      }
      if (customers.size < places.length) throw new Error('one customer in several groups; heed `groupId`');
    },
  },
  {
    title: 'takes the organization of a group from the address, which the body may not contradict',
    async check(trial) {
      const { organization_id: _left, ...others } = await trial.body();
      await trial.granted(others, groupOf(HOME, 'sales'));
      const refusal = { error: 'invalid_request', hint: /^organization_id: must be the address's$/ };
      await trial.refused(refusal, await trial.body({ organization_id: HOME }), groupOf(FOREIGN, 'sales'));
    },
  },
  {
    title: 'refuses what is no name of a group',
    async check(trial) {
      for (const group of ['a b', 'ä', 'x'.repeat(65), 'a.b', '%00']) {
        const refusal = { error: 'invalid_request', hint: /^group_id: / };
        await about(group, async () => trial.refused(refusal, await trial.body(), groupOf(HOME, encodeURI(group))));
      }
    },
  },
  {
    title: 'is refused where the groups of an organization share one identity',
    async check(trial: Trial) {
      const sent = await trial.body({ client_id: SHARED_SITE, organization_id: SHARED });
      await trial.refused({ error: 'unauthorized_client', hint: /^group_id: / }, sent, groupOf(SHARED, 'sales'));
    },
  },
];
