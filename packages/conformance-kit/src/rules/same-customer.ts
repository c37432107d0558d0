import type { GrantRule, GrantSubject } from '../grant-subject.js';
import type { GrantKit } from '../kit.js';
import { parametersOf } from '../request.js';
import { about } from '../rule.js';
import { ADDRESS } from '../secret-search.js';
import { erase } from './customer-data.js';

const BY_KEY = 'get the customer by `CustomersByKey`';

/** The same person is the same customer of an organization. */
export function sameCustomerRules({ again }: GrantKit): GrantRule[] {
  if (again) return [sameCustomer(again)];
  return again === undefined ? [DECLARES_AGAIN] : [];
}

const DECLARES_AGAIN: GrantRule = {
  title: 'has a test that declares `again`, if a parameter is a phone or an email address',
  async check(subject) {
    const parameters = parametersOf(await subject.create());
    const names = subject.ownParameters.filter((name) => ADDRESS.test(`${parameters[name]}`));
    if (names.length === 0) return;
    const declaration = 'declare `again`, which returns another proof for the same address';
    throw new Error(`${names}: ${declaration}, or \`again: false\` if each proof has a customer of its own`);
  },
};

type Again = Exclude<GrantKit['again'], false | undefined>;

function sameCustomer(again: Again): GrantRule {
  return {
    title: 'gives a person one customer in each organization',
    check: (subject) => subject.service.clock.whileStopped(() => assertSameCustomer(subject, again)),
  };
}

async function assertSameCustomer(subject: GrantSubject, again: Again): Promise<void> {
  const earlier = await subject.create();
  const customerOf = async (sent: typeof earlier) => `${(await subject.expectSuccess(sent)).body.entity_id}`;
  const next = async (environment = subject.environment) => {
    subject.service.clock.advance({ seconds: (subject.declared.lifetime ?? 0) + 1 }); // a person has few guesses
    const own = await about('`again`', async () => again(parametersOf(earlier), environment));
    return customerOf(await subject.requestOf(own, environment));
  };
  const customer = await customerOf(earlier);
  if ((await next()) !== customer) throw new Error(`another customer for the same person; ${BY_KEY}`);
  const ofOther = await about('in another organization', () => next(subject.environment.other));
  if (ofOther === customer) throw new Error(`the same customer in another organization; ${BY_KEY}`);
  await erase(subject, [customer]);
  const afterErasure = await about(`after the erasure of its customer; ${BY_KEY}`, () => next());
  if (afterErasure === customer) throw new Error('a token for an erased customer');
}
