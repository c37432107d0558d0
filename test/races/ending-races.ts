import { describe, expect, it } from 'vitest';
import { signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, stay } from '../support/customer-refresh.js';
import { END_SESSIONS } from '../support/end-sessions.js';
import { ERASE } from '../support/managed-customers.js';
import { figure } from '../support/measurements.js';
import { moveOf, remember } from '../support/remember.js';
import { FROM_PAGE, LINK, REMEMBER } from '../support/sign-in-services.js';
import { ACME_SITE } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { redeem } from '../support/transfers.js';
import {
  agentsTokenFor,
  agentsTransferOf,
  chainOf,
  MAKING_NAMES,
  MAKINGS,
  type Making,
  newRacedCustomer,
  newUser,
  type RacedCustomer,
  survivorsOf,
  tokensOf,
  visit,
} from './makings.js';
import { inRounds } from './rounds.js';
import { available, isActiveAt, patient, type RacePod, type RaceWorld } from './world.js';

const REVOKE = '/v2/customer/revoke';
/** The networks of a first and of a second use. */
const AT_HOME = { 'x-forwarded-for': '203.0.113.7' };
const ELSEWHERE = { 'x-forwarded-for': '198.51.100.9' };

/** A round of a race: what ends, what is made meanwhile, and what was made before. */
export interface Round extends Making {
  entityId: string;
  /** Ends what the making starts from. Resolves to the response, also if it is an error by design. */
  end(pod: RacePod): Promise<TestResponse>;
  /** The access tokens that end. */
  tokens: string[];
  /** The status of the response that acknowledges the end; by default 200. */
  acknowledged?: number;
}

/** Ends the token, in turn with the two requests that a customer or its client has for this. */
function endToken(pod: RacePod, token: string, number: number): Promise<TestResponse> {
  return number % 2 === 0
    ? pod.send('DELETE', TOKEN, bearer(token))
    : pod.post(REVOKE, { client_id: ACME_SITE, token });
}

const revoke = (pod: RacePod, token: string) => pod.post(REVOKE, { client_id: ACME_SITE, token });

/**
 * Lets something be made while what it comes from ends. Afterwards nothing that was made works, and an offline verifier
 * rejects every access token that has ended.
 */
export async function raceEnd(
  world: RaceWorld,
  name: string,
  prepare: (pod: RacePod, number: number) => Promise<Round>,
) {
  const ended: string[] = [];
  const survivors: string[] = [];
  await inRounds(name, async (race, number) => {
    // each process ends in turn, independent of the request that ends a token
    const [one, two] = number % 4 < 2 ? world.pods : ([world.pods[1], world.pods[0]] as const);
    const { entityId, end, make, use, tokens, acknowledged = 200 } = await prepare(patient(one), number);
    const [response, made] = await race(
      () => available(() => end(one)),
      () => make(two),
    );
    // A repeated request can find that the first one has ended the token that it is sent with.
    expect([acknowledged, 401]).toContain(response.status);
    expect([200, 400, 401, 503]).toContain(made.status);
    const isMade = made.status === 200 && [undefined, entityId].includes(made.body.entity_id);
    if (isMade) survivors.push(...(await survivorsOf(world, entityId, made, use)));
    ended.push(...tokens, ...(isMade ? tokensOf(made) : []));
    for (const token of tokens) if ((await world.isActive(token)).includes(true)) survivors.push('ended token');
    return isMade ? 'second' : 'first';
  });
  await expectNothingLeft(world, name, survivors, ended);
}

/** Checks that nothing survived, and that an offline verifier rejects the tokens that have ended. */
async function expectNothingLeft(world: RaceWorld, name: string, survivors: string[], ended: string[]) {
  const accepted = await world.acceptedByVerifier(ended);
  figure(`  ${name}: ${survivors.length} survived, ${accepted.length} of ${ended.length} ended without an entry`);
  expect(survivors, 'what survived').toEqual([]);
  expect(accepted, 'what ended without an entry for verifiers').toEqual([]);
}

/** The events that end everything of a customer, which its browser does not find again. */
const ENDS_OF_CUSTOMER = {
  'end_sessions with browsers': ({ agent }, { entityId }) => {
    return (pod) => pod.post(END_SESSIONS, { customer_id: entityId, browsers: true }, agent);
  },
  'an erasure': ({ agent }, { entityId }) => {
    return (pod) => pod.post(ERASE, { customer_id: entityId }, agent);
  },
  'a sign-in of a new user with link': (world, { cookie }) => {
    const sub = newUser();
    return async (pod) => signIn(pod, await world.assert(sub), LINK, { ...FROM_PAGE, cookie });
  },
} satisfies Record<string, EndOfCustomer>;
type EndOfCustomer = (world: RaceWorld, customer: RacedCustomer) => Round['end'];

const END_SESSIONS_BY_CUSTOMER: EndOfCustomer = (_, { token }) => {
  return (pod) => pod.post(END_SESSIONS, {}, bearer(token));
};

const LEVELS = [
  ['it', 0],
  ['a token one level below it', 1],
  ['a token two levels below it', 2],
] as const;

/** What is made while its parent, or everything of its customer, ends. */
export function describeEndingRaces(world: RaceWorld): void {
  describe.each(LEVELS)('the end of an access token, while %s is used,', (_, levels) => {
    it.each(MAKING_NAMES)('ends a %s that is made with it', (making) =>
      raceEnd(world, `token ends / ${making}, ${levels} levels below`, async (pod, number) => {
        const { entityId, token } = await newRacedCustomer(pod);
        const tokens = await chainOf(pod, token, levels, number);
        const made = await MAKINGS[making](pod, tokens.at(-1) as string);
        return { ...made, entityId, tokens, end: (ender) => endToken(ender, token, number) };
      }),
    );
  });

  const ends = { 'end_sessions by the customer': END_SESSIONS_BY_CUSTOMER, ...ENDS_OF_CUSTOMER };
  describe.each(Object.entries(ends))('%s', (name, endOf) => {
    it.each(MAKING_NAMES)('ends a %s that is made at the same time', (making) =>
      raceEnd(world, `${name} / ${making}`, async (pod, number) => {
        const customer = await newRacedCustomer(pod);
        const tokens = await chainOf(pod, customer.token, number % 3, number);
        const made = await MAKINGS[making](pod, tokens.at(-1) as string);
        return { ...made, entityId: customer.entityId, tokens, end: endOf(world, customer) };
      }),
    );

    it('ends the successor of a refresh token that is used at the same time', () =>
      raceEnd(world, `${name} / rotation`, async (pod) => {
        const customer = await newRacedCustomer(pod);
        const { access_token, refresh_token } = (await stay(pod, await moveOf(pod, customer.token))).body;
        return {
          entityId: customer.entityId,
          tokens: [customer.token, access_token],
          end: endOf(world, customer),
          make: (maker) => refreshCustomer(maker, refresh_token),
        };
      }));
  });

  it.each(Object.entries(ENDS_OF_CUSTOMER))('%s leaves no way from the browser to the customer', (name, endOf) =>
    raceEnd(world, `${name} / visit`, async (pod) => {
      const customer = await newRacedCustomer(pod);
      const { entityId, token, cookie } = customer;
      return { entityId, tokens: [token], end: endOf(world, customer), make: (maker) => visit(maker, cookie) };
    }),
  );

  describe('an erasure', () => {
    const erase = ENDS_OF_CUSTOMER['an erasure'];

    it('ends a transfer by an agent at the same time', () =>
      raceEnd(world, 'an erasure / agent’s transfer', async (pod) => {
        const customer = await newRacedCustomer(pod);
        const make = (maker: RacePod) => agentsTransferOf(maker, world.agent, customer.entityId);
        return { entityId: customer.entityId, tokens: [customer.token], end: erase(world, customer), make };
      }));

    it('ends a token that an agent gets at the same time', () =>
      raceEnd(world, 'an erasure / agent’s token', async (pod) => {
        const customer = await newRacedCustomer(pod);
        const make = (maker: RacePod) => agentsTokenFor(maker, world.agent, customer.entityId);
        return { entityId: customer.entityId, tokens: [customer.token], end: erase(world, customer), make };
      }));

    it('ends a sign-in of the user at the same time', () =>
      raceEnd(world, 'an erasure / sign-in', async (pod) => {
        const sub = newUser();
        const first = await signIn(pod, await world.assert(sub), REMEMBER, FROM_PAGE);
        const { entity_id: entityId, access_token: token } = first.body;
        const assertion = await world.assert(sub);
        const make = (maker: RacePod) => signIn(maker, assertion, REMEMBER, FROM_PAGE);
        return { entityId, tokens: [token], end: erase(world, { entityId, token, cookie: cookieHeader(first) }), make };
      }));
  });

  describe('the end of a refresh token', () => {
    /** A device with a refresh token whose predecessors were used. */
    async function deviceOf(pod: RacePod) {
      const customer = await newRacedCustomer(pod);
      const move = await moveOf(pod, customer.token);
      const first = (await stay(pod, move, {}, AT_HOME)).body;
      const second = (await refreshCustomer(pod, first.refresh_token)).body;
      const third = (await refreshCustomer(pod, second.refresh_token)).body;
      return { entityId: customer.entityId, move, first, third };
    }
    type Device = Awaited<ReturnType<typeof deviceOf>>;

    const ENDS: [string, acknowledged: number, (pod: RacePod, device: Device) => Promise<TestResponse>][] = [
      ['revocation', 200, (pod, { third }) => revoke(pod, third.refresh_token)],
      ['reuse of an earlier refresh token', 400, (pod, { first }) => refreshCustomer(pod, first.refresh_token)],
      ['replay of its code', 400, (pod, { move }) => stay(pod, move, {}, ELSEWHERE)],
    ];

    it.each(ENDS)('by %s ends what its access token makes at the same time', (name, acknowledged, end) =>
      raceEnd(world, `${name} / of the token of the refresh token`, async (pod, number) => {
        const device = await deviceOf(pod);
        const making = MAKING_NAMES[number % MAKING_NAMES.length] as keyof typeof MAKINGS;
        const tokens = [device.first.access_token, device.third.access_token];
        const made = await MAKINGS[making](pod, device.third.access_token);
        return { ...made, entityId: device.entityId, tokens, acknowledged, end: (ender) => end(ender, device) };
      }),
    );

    it.each(ENDS)('by %s ends what its use gives at the same time', (name, acknowledged, end) =>
      raceEnd(world, `${name} / rotation`, async (pod) => {
        const device = await deviceOf(pod);
        const tokens = [device.first.access_token, device.third.access_token];
        const make = (maker: RacePod) => refreshCustomer(maker, device.third.refresh_token);
        return { entityId: device.entityId, tokens, acknowledged, end: (ender) => end(ender, device), make };
      }),
    );
  });

  it('a replay of the code that gave a browser ends what the token of the browser makes at the same time', () =>
    raceEnd(world, 'replay / of the browser’s token', async (pod, number) => {
      const { entityId, token } = await newRacedCustomer(pod);
      const move = await moveOf(pod, token);
      const { access_token } = (await remember(pod, move, { headers: AT_HOME })).body;
      const making = MAKING_NAMES[number % MAKING_NAMES.length] as keyof typeof MAKINGS;
      const end = (ender: RacePod) => remember(ender, move, { headers: ELSEWHERE });
      return {
        ...(await MAKINGS[making](pod, access_token)),
        entityId,
        tokens: [access_token],
        acknowledged: 400,
        end,
      };
    }));

  describe('end_sessions ends what was there before and leaves what comes after it', () => {
    interface LaterRound {
      customer: RacedCustomer;
      end: Round['end'];
      make(pod: RacePod): Promise<TestResponse>;
    }

    /**
     * Both requests succeed in each order. If the token of before the race is active after the response to the making,
     * the end came later, and nothing of what was made works. Otherwise all of it works in both processes, or nothing.
     */
    async function raceInOrder(name: string, prepare: (pod: RacePod) => Promise<LaterRound>) {
      const ended: string[] = [];
      const survivors: string[] = [];
      const halves: string[] = [];
      await inRounds(name, async (race) => {
        const [one, two] = world.pods;
        const { customer, end, make } = await prepare(world.patient);
        const [response, { made, isBefore }] = await race(
          () => available(() => end(one)),
          async () => {
            const made = await make(two);
            return { made, isBefore: made.status === 200 && (await isActiveAt(two, customer.token)) };
          },
        );
        expect([200, 401]).toContain(response.status);
        if (made.status !== 200) return 'unknown';
        const left = await survivorsOf(world, customer.entityId, made);
        ended.push(customer.token, ...(left.length === 0 ? tokensOf(made) : []));
        if (isBefore) survivors.push(...left);
        const given = [made.body.access_token, made.body.identity_transfer_token, made.cookies[0]].filter(Boolean);
        if (left.length > 0 && left.length < given.length) halves.push(...left);
        const actives = made.body.access_token ? await world.isActive(made.body.access_token) : [];
        if (new Set(actives).size > 1) halves.push('access token in one process');
        if (left.length > 0) return 'first';
        return isBefore ? 'second' : 'unknown';
      });
      expect(halves, 'what works in part').toEqual([]);
      await expectNothingLeft(world, name, survivors, ended);
    }

    it('while an agent transfers the customer', () =>
      raceInOrder('end_sessions / agent’s transfer', async (pod) => {
        const customer = await newRacedCustomer(pod);
        const make = (maker: RacePod) => agentsTransferOf(maker, world.agent, customer.entityId);
        return { customer, end: END_SESSIONS_BY_CUSTOMER(world, customer), make };
      }));

    it('while an agent gets a token', () =>
      raceInOrder('end_sessions / agent’s token', async (pod) => {
        const customer = await newRacedCustomer(pod);
        const make = (maker: RacePod) => agentsTokenFor(maker, world.agent, customer.entityId);
        return { customer, end: END_SESSIONS_BY_CUSTOMER(world, customer), make };
      }));

    it('while the user signs in, whose token works if the pair does', () =>
      raceInOrder('end_sessions with browsers / sign-in', async (pod) => {
        const sub = newUser();
        const first = await signIn(pod, await world.assert(sub), REMEMBER, FROM_PAGE);
        const { entity_id: entityId, access_token: token } = first.body;
        const customer = { entityId, token, cookie: cookieHeader(first) };
        const assertion = await world.assert(sub);
        const end = ENDS_OF_CUSTOMER['end_sessions with browsers'](world, customer);
        return { customer, end, make: (maker) => signIn(maker, assertion, REMEMBER, FROM_PAGE) };
      }));
  });

  it('two exchanges of one code from two networks end everything that the code gave', async () => {
    const survivors: string[] = [];
    const ended: string[] = [];
    await inRounds('code from two networks', async (race, number) => {
      const [one, two] = world.pods;
      const { entityId, token } = await newRacedCustomer(world.patient);
      const move = await moveOf(world.patient, token);
      const exchange = (pod: RacePod, headers: object) => {
        if (number % 3 === 0) return redeem(pod, move.code, { code_verifier: move.verifier }, headers);
        return number % 3 === 1 ? remember(pod, move, { headers }) : stay(pod, move, {}, headers);
      };
      const [first, second] = await race(
        () => exchange(one, AT_HOME),
        () => exchange(two, ELSEWHERE),
      );
      const winners = [first, second].filter(({ status }) => status === 200);
      expect(winners.length).toBeLessThanOrEqual(1);
      for (const winner of winners) {
        survivors.push(...(await survivorsOf(world, entityId, winner)));
        ended.push(...tokensOf(winner));
      }
      if (winners.length === 0) return 'unknown';
      return winners[0] === first ? 'first' : 'second';
    });
    await expectNothingLeft(world, 'code from two networks', survivors, ended);
  });

  it('two exchanges of one code from one network give one token and one device, which stay valid', async () => {
    const broken: string[] = [];
    await inRounds('code from one network', async (race, number) => {
      const [one, two] = world.pods;
      const { entityId, token } = await newRacedCustomer(world.patient);
      const move = await moveOf(world.patient, token);
      const exchange = (pod: RacePod) => {
        if (number % 3 === 0) return redeem(pod, move.code, { code_verifier: move.verifier });
        return number % 3 === 1 ? remember(pod, move) : stay(pod, move);
      };
      const [first, second] = await race(
        () => exchange(one),
        () => exchange(two),
      );
      const [winner, ...more] = [first, second].filter(({ status }) => status === 200);
      expect(more).toEqual([]);
      if (!winner) return 'unknown';
      const alive = await survivorsOf(world, entityId, winner);
      if (alive.join() !== expectedOf(number).join()) broken.push(`${alive} instead of ${expectedOf(number)}`);
      return winner === first ? 'first' : 'second';
    });
    expect(broken).toEqual([]);
  });
}

/** What the exchange of a code in a round gives. */
function expectedOf(number: number): string[] {
  return [['access token'], ['access token', 'identity cookies'], ['access token', 'refresh token']][
    number % 3
  ] as string[];
}
