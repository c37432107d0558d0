import { IsString } from 'class-validator';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import {
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OAuthError,
  Optional,
} from '../../src/public/grant.js';
import { agentTokenBody, claimsOf } from '../support/agent-tokens.js';
import { RIVAL_SIGN_IN, registryWithSignIn, SIGN_IN, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, stay } from '../support/customer-refresh.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ProofController } from '../support/proof-controller.js';
import { moveOf, remember } from '../support/remember.js';
import { FROM_PAGE, LINK, newUser, REMEMBER } from '../support/sign-in-services.js';
import { ACME, ACME_SITE, RIVAL } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { INFO, infoStatus, redeem, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

class NamedBody extends GrantBody {
  @IsString()
  entity_id!: string;

  @Optional()
  @IsString()
  proof?: string;
}

/** Gives a token for the customer that the request names. A real grant has a proof of it. */
@GrantType('named', { body: NamedBody })
class NamedGrant implements Grant<NamedBody> {
  constructor(private readonly customers: CustomerService) {}

  async grant({ body }: GrantRequest<NamedBody>): Promise<GrantResult> {
    const customer = await this.customers.find(body.entity_id, ACME);
    if (!customer) throw OAuthError.invalidGrant('unknown');
    // a grant cannot say itself that the customer is a user
    return { ...customer, hasUser: true, ...(body.proof !== undefined && { proof: body.proof }) };
  }
}

@GrantType('named_by_proof', { body: NamedBody, endsWith: 'caller' })
class ProofGrant extends NamedGrant {}

@GrantType('named_and_verified', { body: NamedBody, verifiesUser: true })
class VerifyingGrant extends NamedGrant {}

@GrantType('named_and_verified_by_proof', { body: NamedBody, endsWith: 'caller', verifiesUser: true })
class VerifyingProofGrant extends NamedGrant {}

const extension = defineExtension({
  grants: [NamedGrant, ProofGrant, VerifyingGrant, VerifyingProofGrant],
  controllers: [ProofController],
});

let acme: SignInSystem;
afterAll(() => acme?.issuer.stop());
const service = useService(async () => {
  acme = await SignInSystem.start();
  return { ...extension, registry: registryWithSignIn({ [ACME]: acme.settings() }) };
});

const AT_SIGN_IN = { client_id: SIGN_IN };
const AT_RIVAL = { client_id: RIVAL_SIGN_IN, organization_id: RIVAL };

/** A customer, one of its tokens, and its browser. */
interface Origin {
  entityId: string;
  token: string;
  cookie: string;
}

const originOf = (response: TestResponse): Origin => ({
  entityId: response.body.entity_id,
  token: tokenOf(response),
  cookie: cookieHeader(response),
});
function tokenOf({ status, body }: TestResponse): string {
  expect(status).toBe(200);
  return body.access_token;
}
const newVisitor = async () => originOf(await service.visit());
const signInAs = async (sub: string, more: object = {}, cookie?: string) =>
  signIn(service, await acme.assert(service.clock.now(), { sub }), more, { ...FROM_PAGE, ...(cookie && { cookie }) });
const newSignedIn = async () => originOf(await signInAs(newUser(), REMEMBER));

const byCookie = async (cookie: string, body: object = {}) => tokenOf(await service.visit(cookie, body));
const byTransfer = async (token: string) => tokenOf(await redeem(service, await transferToken(service, token)));
const rememberedBy = async (token: string) =>
  remember(service, await moveOf(service, token, AT_SIGN_IN), { body: AT_SIGN_IN });
const staying = async (token: string) => stay(service, await moveOf(service, token, AT_SIGN_IN), AT_SIGN_IN);
const refreshed = async ({ body }: TestResponse) => refreshCustomer(service, body.refresh_token, AT_SIGN_IN);
const byAgent = async (more: object = {}, path = TOKEN) =>
  tokenOf(await service.post(path, agentTokenBody(more), bearer(await issueAgentToken(service))));
const byGrant = async (grant_type: string, entity_id: string, proof?: string) =>
  tokenOf(await service.post(TOKEN, { grant_type, client_id: ACME_SITE, entity_id, proof }));
const proofOf = async (token: string, kind: 'customer' | 'agent' = 'customer'): Promise<string> =>
  (await service.send('GET', `/proof/${kind}`, bearer(token))).body.proof;

/** Checks the claim in the token, in token info and in introspection. */
async function expectVerified(token: string, isVerified: boolean): Promise<void> {
  const info = await service.send('GET', INFO, bearer(token));
  const introspection = await service.admin('POST', '/oauth2/introspect', { token });
  expect([info.status, introspection.body.active]).toEqual([200, true]);
  const all = [claimsOf(token), info.body, introspection.body];
  const expected = isVerified ? [true, true, true] : [undefined, undefined, undefined];
  expect(all.map(({ user_verified }) => user_verified)).toEqual(expected);
  expect(all.map((claims) => 'user_verified' in claims)).toEqual(all.map(() => isVerified));
}

/** Each way to a token of a customer that exists. */
const WAYS: [string, (origin: Origin) => Promise<string>][] = [
  ['by the first response', async ({ token }) => token],
  ['by the cookies of its browser', ({ cookie }) => byCookie(cookie)],
  ['by a transfer', ({ token }) => byTransfer(token)],
  [
    'by the cookies of a browser that remembers a transfer',
    async ({ token }) => byCookie(cookieHeader(await rememberedBy(token))),
  ],
  ['after a refresh', async ({ token }) => tokenOf(await refreshed(await staying(token)))],
  ['by an agent with entity_id', ({ entityId }) => byAgent({ entity_id: entityId })],
  ['by an agent at the older path', ({ entityId }) => byAgent({ entity_id: entityId }, '/customer/')],
  ['by a grant of a team', ({ entityId }) => byGrant('named', entityId)],
  [
    'by a grant of a team with a proof of the customer',
    async ({ entityId, token }) => byGrant('named_by_proof', entityId, await proofOf(token)),
  ],
  [
    'by a grant of a team with a proof of an agent',
    async ({ entityId }) => byGrant('named_by_proof', entityId, await proofOf(await issueAgentToken(service), 'agent')),
  ],
  [
    'by a transfer of the token of a grant that verifies users',
    async ({ entityId }) => byTransfer(await byGrant('named_and_verified', entityId)),
  ],
  [
    'of a browser that remembers a transfer of the token of a grant that verifies users',
    async ({ entityId, token }) => {
      const verified = await byGrant('named_and_verified_by_proof', entityId, await proofOf(token));
      return byCookie(cookieHeader(await rememberedBy(verified)));
    },
  ],
  [
    'by a grant of a team with a proof of a token of a grant that verifies users',
    async ({ entityId }) =>
      byGrant('named_by_proof', entityId, await proofOf(await byGrant('named_and_verified', entityId))),
  ],
];

describe('protocol §3.3: user_verified', () => {
  let [visitor, user] = [] as unknown as [Origin, Origin];
  beforeEach(async () => {
    [visitor, user] = [await newVisitor(), await newSignedIn()];
  });

  it.each(WAYS)('is true in the token of a user and absent in that of a visitor: %s', async (_, tokenFor) => {
    await expectVerified(await tokenFor(visitor), false);
    await expectVerified(await tokenFor(user), true);
  });

  it.each<[string, (origin: Origin) => Promise<string>]>([
    ['a grant that verifies users', ({ entityId }) => byGrant('named_and_verified', entityId)],
    [
      'one with a proof of the customer',
      async ({ entityId, token }) => byGrant('named_and_verified_by_proof', entityId, await proofOf(token)),
    ],
    [
      'one with a proof of an agent',
      async ({ entityId }) =>
        byGrant('named_and_verified_by_proof', entityId, await proofOf(await issueAgentToken(service), 'agent')),
    ],
  ])('is true in the token of %s, for a user and for a visitor', async (_, tokenFor) => {
    for (const origin of [visitor, user]) await expectVerified(await tokenFor(origin), true);
    await expectVerified(await byCookie(visitor.cookie), false);
  });

  it.each<[string, () => Promise<string>]>([
    ['an assertion of a new user', async () => tokenOf(await signInAs(newUser()))],
    [
      'an assertion of a known user',
      async () => {
        const sub = newUser();
        await signInAs(sub);
        return tokenOf(await signInAs(sub));
      },
    ],
    ['a sign-in of a new user with link', async () => tokenOf(await signInAs(newUser(), LINK, visitor.cookie))],
    [
      'a sign-in of a known user with link',
      async () => {
        const sub = newUser();
        await signInAs(sub);
        return tokenOf(await signInAs(sub, LINK, visitor.cookie));
      },
    ],
    ['an agent with an external_id that is new', () => byAgent({ external_id: newUser() })],
    [
      'an agent with an external_id that is known',
      async () => {
        const external_id = newUser();
        await byAgent({ external_id });
        return byAgent({ external_id });
      },
    ],
    [
      'an agent with the entity_id of a customer that has an external_id',
      async () => byAgent({ entity_id: claimsOf(await byAgent({ external_id: newUser() })).sub }),
    ],
  ])('is true in the token by %s', async (_, newToken) => {
    await expectVerified(await newToken(), true);
  });

  it.each<[string, () => Promise<string>]>([
    ['an agent with a new customer', () => byAgent()],
    ['an agent with a new customer at the older path', () => byAgent({}, '/customer/')],
    [
      'an agent with the entity_id of such a customer',
      async () => byAgent({ entity_id: claimsOf(await byAgent()).sub }),
    ],
    ['the cookies of a user’s browser in another organization', () => byCookie(user.cookie, AT_RIVAL)],
    [
      'the cookies of a visitor’s browser that has signed in with a new pair',
      async () => {
        await signInAs(newUser(), REMEMBER, visitor.cookie);
        return byCookie(visitor.cookie);
      },
    ],
    [
      'the earlier cookies of a visitor that became a user',
      async () => {
        await signInAs(newUser(), LINK, visitor.cookie);
        return byCookie(visitor.cookie);
      },
    ],
  ])('is absent in the token by %s', async (_, newToken) => {
    await expectVerified(await newToken(), false);
  });

  it('is in no valid token of a visitor that became a user but the user’s own, because the earlier ones have ended', async () => {
    const device = await rememberedBy(visitor.token);
    const refreshing = await staying(visitor.token);
    const code = await transferToken(service, visitor.token);
    const earlier = [
      visitor.token,
      tokenOf(device),
      tokenOf(refreshing),
      await byAgent({ entity_id: visitor.entityId }),
    ];
    const signedIn = await signInAs(newUser(), LINK, visitor.cookie);
    expect(signedIn.body.entity_id).toBe(visitor.entityId);
    expect(await Promise.all(earlier.map((token) => infoStatus(service, token)))).toEqual(earlier.map(() => 401));
    for (const response of [await refreshed(refreshing), await redeem(service, code)]) expectInvalidGrant(response);
    expect(await service.idOf(cookieHeader(device))).not.toBe(visitor.entityId);
    const later = [
      tokenOf(signedIn),
      await byCookie(cookieHeader(signedIn)),
      await byAgent({ entity_id: visitor.entityId }),
    ];
    for (const token of later) await expectVerified(token, true);
  });
});
