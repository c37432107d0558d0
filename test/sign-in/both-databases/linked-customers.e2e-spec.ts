import { describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { agentTokenBody } from '../../support/agent-tokens.js';
import { SIGN_IN } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, stay } from '../../support/customer-refresh.js';
import { expectInvalidGrant, expectInvalidRequest } from '../../support/expect-error.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { moveOf, remember } from '../../support/remember.js';
import {
  FROM_PAGE,
  LINK,
  linkedEvents,
  newUser,
  other,
  REMEMBER,
  service,
  signInAs,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { delaySelects } from '../../support/statements.js';
import type { TestResponse } from '../../support/test-service.js';
import { infoStatus, redeem, TRANSFER, transferBody, transferToken } from '../../support/transfers.js';

const ROUND_COUNT = 6;
const AT_SIGN_IN = { client_id: SIGN_IN };

startSignInServices();

const newVisitor = async () => {
  const response = await service.visit();
  const { entity_id: entityId, access_token: token } = response.body;
  return { entityId: entityId as string, token: token as string, cookie: cookieHeader(response) };
};
/** A sign-in in the browser with these cookies. */
const linkAs = async (sub: string, cookie: string, more: object = LINK, at = service): Promise<TestResponse> => {
  const response = await signInAs(sub, more, { ...FROM_PAGE, cookie }, at);
  expect(response.status).toBe(200);
  return response;
};
/** A user that has a customer. */
async function knownUser(): Promise<{ sub: string; entityId: string }> {
  const sub = newUser();
  return { sub, entityId: (await signInAs(sub)).body.entity_id };
}
const askAsAgent = async (entity_id: string) =>
  service.post(TOKEN, agentTokenBody({ entity_id }), bearer(await issueAgentToken(service)));

describe('protocol §4.7: linked_entity_id', () => {
  it('names the visitor’s customer in the response that links it to a known user, and in no later response', async () => {
    const [visitor, { sub, entityId }] = [await newVisitor(), await knownUser()];
    const linked = await linkAs(sub, visitor.cookie);
    expect(linked.body).toMatchObject({ entity_id: entityId, linked_entity_id: visitor.entityId });
    const later = [
      await linkAs(sub, cookieHeader(linked)),
      await linkAs(sub, visitor.cookie),
      await linkAs((await knownUser()).sub, visitor.cookie),
      await service.visit(cookieHeader(linked)),
      await signInAs(sub),
    ];
    expect(later.map(({ status }) => status)).toEqual(later.map(() => 200));
    for (const { body } of later) expect(body).not.toHaveProperty('linked_entity_id');
  });

  it.each<[string, (cookie: string) => Promise<TestResponse>]>([
    ['a new user takes the visitor’s customer over', (cookie) => linkAs(newUser(), cookie)],
    ['a new user signs in without link', (cookie) => linkAs(newUser(), cookie, REMEMBER)],
    ['a known user signs in without link', async (cookie) => linkAs((await knownUser()).sub, cookie, REMEMBER)],
    ['the browser has no cookies', async () => signInAs((await knownUser()).sub, LINK, FROM_PAGE)],
    [
      'the browser leads to the customer of another user',
      async () => linkAs((await knownUser()).sub, cookieHeader(await signInAs(newUser(), REMEMBER, FROM_PAGE))),
    ],
    [
      'the browser received the visitor’s customer by a transfer',
      async () => {
        const move = await moveOf(service, (await newVisitor()).token, AT_SIGN_IN);
        const device = await remember(service, move, { body: AT_SIGN_IN });
        return linkAs((await knownUser()).sub, cookieHeader(device));
      },
    ],
  ])('is absent if %s', async (_, signIn) => {
    const { status, body } = await signIn((await newVisitor()).cookie);
    expect(status).toBe(200);
    expect(body).not.toHaveProperty('linked_entity_id');
  });

  it('names a customer for which an agent gets neither a token nor a transfer token any more', async () => {
    const visitor = await newVisitor();
    expect((await askAsAgent(visitor.entityId)).status).toBe(200);
    const { linked_entity_id } = (await linkAs((await knownUser()).sub, visitor.cookie)).body;
    expectInvalidRequest(await askAsAgent(linked_entity_id), /^entity_id: /);
    const named = transferBody({ bearer_type: 'agent', customer_id: linked_entity_id });
    expectInvalidRequest(await service.post(TRANSFER, named, bearer(await issueAgentToken(service))), /^customer_id: /);
    expect((await service.post(TRANSFER, transferBody(), bearer(visitor.token))).status).toBe(401);
  });
});

describe('a pair that was planted in two browsers', () => {
  it.each<[string, () => Promise<string>, boolean]>([
    ['known', async () => (await knownUser()).sub, true],
    ['new', async () => newUser(), false],
  ])(
    'is linked or taken over once, and neither user’s conversation reaches the planter: the first user is %s',
    async (_, firstUser, isLinked) => {
      const planted = await newVisitor();
      const planter = {
        code: await transferToken(service, planted.token),
        device: cookieHeader(
          await remember(service, await moveOf(service, planted.token, AT_SIGN_IN), { body: AT_SIGN_IN }),
        ),
        refresh: (await stay(service, await moveOf(service, planted.token, AT_SIGN_IN), AT_SIGN_IN)).body,
      };
      const victims = [await firstUser(), (await knownUser()).sub] as const;
      for (const _victim of victims) expect(await service.idOf(planted.cookie)).toBe(planted.entityId);

      const first = await linkAs(victims[0], planted.cookie);
      const second = await linkAs(victims[1], planted.cookie);
      expect(first.body.linked_entity_id).toBe(isLinked ? planted.entityId : undefined);
      expect(first.body.entity_id === planted.entityId).toBe(!isLinked);
      expect(second.body).not.toHaveProperty('linked_entity_id');
      expect(second.body.entity_id).not.toBe(planted.entityId);
      expect(linkedEvents().map(({ details }) => details)).toEqual([{ linked: planted.entityId }]);

      const ofUsers = [first, second].map(({ body }) => body.entity_id as string);
      expect(new Set(ofUsers).size).toBe(2);
      for (const token of [planted.token, planter.refresh.access_token])
        expect(await infoStatus(service, token)).toBe(401);
      expectInvalidGrant(await refreshCustomer(service, planter.refresh.refresh_token, AT_SIGN_IN));
      expectInvalidGrant(await redeem(service, planter.code));
      for (const cookie of [planted.cookie, planter.device])
        expect([planted.entityId, ...ofUsers]).not.toContain(await service.idOf(cookie));
      const ownUser = await knownUser();
      const own = await linkAs(ownUser.sub, planted.cookie);
      expect(own.body.entity_id).toBe(ownUser.entityId);
      expect([planted.entityId, ...ofUsers]).not.toContain(own.body.linked_entity_id);

      for (const [index, response] of [first, second].entries()) {
        expect(await infoStatus(service, response.body.access_token)).toBe(200);
        expect(await service.idOf(cookieHeader(response))).toBe(ofUsers[index]);
      }
    },
  );

  it.each([
    ['two users', false],
    ['one user', true],
  ])('is linked once by two sign-ins at once in two processes: those of %s', async (_, isSame) => {
    if (!onMariadb) for (const process of [service, other]) delaySelects(process);
    for (let round = 0; round < ROUND_COUNT; round++) {
      const [planted, one] = [await newVisitor(), await knownUser()];
      const two = isSame ? one : await knownUser();
      const responses = await Promise.all([
        linkAs(one.sub, planted.cookie),
        linkAs(two.sub, planted.cookie, LINK, other),
      ]);
      expect(responses.map(({ body }) => body.entity_id)).toEqual([one.entityId, two.entityId]);
      const linkedIds = responses.map(({ body }) => body.linked_entity_id).filter((id) => id !== undefined);
      expect(linkedIds).toEqual([planted.entityId]);
    }
  });
});
