import type { GrantMetadata } from '@customer-authorization/service/testing-host';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import { OTHER_CLIENT } from '../kit-registry.js';
import { type SentRequest, withParameter } from '../request.js';
import { about } from '../rule.js';
import { ADDRESS } from '../secret-search.js';

/** The part of its lifetime after which a proof still gets a token. */
const VALID_RATIO = 0.9;
const COMPARE_CLIENT =
  'store the client with the proof, and compare it with `client.clientId`; or declare anyClient: true in @GrantType';
const COMPARE_ADDRESS =
  'store the address with the proof, such as the recipient of a code, and find the customer by it';
const COMPARE_TIME = 'compare the time of its expiry with `clock.now()` of the injected `Clock`';
const COMPARE_ORGANIZATION =
  'store the organization with the proof and compare it, or read the keys of `organization`; declare anyOrganization: true in the test if a proof is valid everywhere';
const FOR_OTHER = 'return a proof for `clientId` and `organizationId` of the environment in `valid`';

/** To which client and organization, and for how long, a proof belongs. */
export function bindingRules({ anyClient, lifetime }: GrantMetadata, anyOrganization = false): GrantRule[] {
  return [
    ...(anyClient ? [] : [BOUND_TO_CLIENT]),
    BOUND_TO_ADDRESS,
    lifetime === undefined ? DECLARES_LIFETIME : expiresAfter(lifetime),
    ...(anyOrganization ? [] : [OF_OTHER_ORGANIZATION]),
  ];
}

const BOUND_TO_CLIENT: GrantRule = {
  title: 'gives a token only to the client that a route created the proof for',
  async check(subject) {
    const { sent, isOfRoute } = await subject.proof();
    if (!isOfRoute) return;
    await subject.expectNoToken(
      withParameter(sent, 'client_id', OTHER_CLIENT.clientId),
      'another client',
      COMPARE_CLIENT,
    );
    await about('its own client, after another one tried', () => subject.expectSuccess(sent));
  },
};

const BOUND_TO_ADDRESS: GrantRule = {
  title: 'gives no token for a proof with the phone or email address of another proof',
  async check(subject) {
    const [{ sent, isOfRoute }, other] = [await subject.proof(), await subject.create()];
    if (!isOfRoute) return;
    for (const name of subject.ownParameters.filter((each) => ADDRESS.test(`${sent.body?.[each]}`)))
      await subject.expectNoToken(
        withParameter(sent, name, `${other.body?.[name]}`),
        `${name}: the address of another proof`,
        COMPARE_ADDRESS,
      );
  },
};

const DECLARES_LIFETIME: GrantRule = {
  title: 'declares the lifetime of a proof that a route creates',
  async check(subject) {
    if (!(await subject.proof()).isOfRoute) return;
    throw new Error('declare `lifetime` in @GrantType: the number of seconds for which a proof is valid');
  },
};

function expiresAfter(lifetime: number): GrantRule {
  return {
    title: 'gives no token after the lifetime of the proof',
    check: (subject) =>
      subject.service.clock.whileStopped(async () => {
        const { clock } = subject.service;
        const [young, old] = [await subject.proof(), await subject.create()];
        clock.advance({ seconds: lifetime * VALID_RATIO });
        // another system may make proofs of a shorter lifetime
        if (young.isOfRoute)
          await about(`after 90% of its lifetime of ${lifetime} s`, () => subject.expectSuccess(young.sent));
        clock.advance({ seconds: lifetime * (1 - VALID_RATIO) + 1 });
        await subject.expectNoToken(old, `after its lifetime of ${lifetime} s`, COMPARE_TIME);
      }),
  };
}

const OF_OTHER_ORGANIZATION: GrantRule = {
  title: 'gives no token for the proof of another organization, which works there',
  async check(subject) {
    const { other, organizationId } = subject.environment;
    const own = await subject.create();
    for (const count of [1, 2])
      await about(`the other organization, proof ${count}; ${FOR_OTHER}`, async () =>
        subject.expectSuccess(await subject.create(other)),
      );
    const foreign = await subject.create(other);
    const moved = { ...foreign, body: { ...own.body, ...ownParametersOf(subject, foreign) }, headers: own.headers };
    await subject.expectNoToken(moved, 'the proof of another organization', COMPARE_ORGANIZATION);
    await subject.expectNoToken(foreignOf(own, foreign), 'a proof in another organization', COMPARE_ORGANIZATION);
    await about(`its own organization, ${organizationId}, after another one tried`, () => subject.expectSuccess(own));
  },
};

/** The proof of one request in the other one, with its client and organization. */
function foreignOf(own: SentRequest, foreign: SentRequest): SentRequest {
  const { client_id, organization_id } = foreign.body ?? {};
  const named = own.body && 'organization_id' in own.body ? { organization_id } : {};
  return { ...own, body: { ...own.body, client_id, ...named }, headers: foreign.headers };
}

function ownParametersOf({ ownParameters }: GrantSubject, { body = {} }: SentRequest): object {
  return Object.fromEntries(Object.entries(body).filter(([name]) => ownParameters.includes(name)));
}
