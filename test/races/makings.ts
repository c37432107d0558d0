import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, stay } from '../support/customer-refresh.js';
import { moveOf, remember } from '../support/remember.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import type { HttpClient, TestResponse } from '../support/test-service.js';
import { redeem, TRANSFER, transferBody, transferToken } from '../support/transfers.js';
import { available, type RacePod, type RaceWorld } from './world.js';

const DEVICE_APPROVAL = '/v2/customer/device_approval';

/** A customer in its first browser. */
export interface RacedCustomer {
  entityId: string;
  token: string;
  cookie: string;
}

/** A request that makes something from a token, and the request that uses what the response does not contain. */
export interface Making {
  make(pod: RacePod): Promise<TestResponse>;
  use?(pod: RacePod): Promise<TestResponse>;
}

/** Prepares a request that makes something from a customer's access token. */
export type MakingOf = (pod: RacePod, token: string) => Promise<Making>;

/** What a customer can make from an access token. */
export const MAKINGS = {
  'transfer token': async (_, token) => ({ make: (pod) => transfer(pod, token) }),
  'token by a transfer token': async (prepared, token) => {
    const code = await transferToken(prepared, token);
    return { make: (pod) => redeem(pod, code) };
  },
  'browser by a transfer token': async (prepared, token) => {
    const move = await moveOf(prepared, token);
    return { make: (pod) => remember(pod, move) };
  },
  'refresh token by a transfer token': async (prepared, token) => {
    const move = await moveOf(prepared, token);
    return { make: (pod) => stay(pod, move) };
  },
  'proof of an extension': async (prepared, token) => {
    const { user_code, device_code } = await startDevice(prepared);
    return { make: (pod) => approve(pod, token, user_code), use: (pod) => poll(pod, device_code) };
  },
  'token by a proof of an extension': async (prepared, token) => {
    const { user_code, device_code } = await startDevice(prepared);
    expect((await approve(prepared, token, user_code)).status).toBe(200);
    return { make: (pod) => poll(pod, device_code) };
  },
} satisfies Record<string, MakingOf>;

export const MAKING_NAMES = Object.keys(MAKINGS) as (keyof typeof MAKINGS)[];

const transfer = (pod: HttpClient, token: string) => pod.post(TRANSFER, transferBody(), bearer(token));

async function startDevice(pod: HttpClient): Promise<{ user_code: string; device_code: string }> {
  const body = { client_id: ACME_SITE, organization_id: ACME };
  return (await pod.post(`${DEVICE_APPROVAL}/start`, body)).body;
}

function approve(pod: HttpClient, token: string, user_code: string): Promise<TestResponse> {
  return pod.post(`${DEVICE_APPROVAL}/decide`, { user_code, decision: 'approve' }, bearer(token));
}

function poll(pod: HttpClient, device_code: string): Promise<TestResponse> {
  return pod.post(TOKEN, { grant_type: 'device_approval', client_id: ACME_SITE, device_code });
}

export const visit = (pod: HttpClient, cookie: string, more: object = {}) =>
  pod.post(TOKEN, cookieBody(more), { cookie });

export async function newRacedCustomer(pod: HttpClient): Promise<RacedCustomer> {
  const response = await pod.post(TOKEN, cookieBody());
  expect(response.status).toBe(200);
  return { entityId: response.body.entity_id, token: response.body.access_token, cookie: cookieHeader(response) };
}

/** The ways by which a customer gets to a further device. */
const STEPS = [
  async (pod: RacePod, token: string) => redeem(pod, await transferToken(pod, token)),
  async (pod: RacePod, token: string) => remember(pod, await moveOf(pod, token)),
  async (pod: RacePod, token: string) => stay(pod, await moveOf(pod, token)),
];

/**
 * The access tokens of a chain that begins with this one: each was obtained with the token before it, in another way.
 *
 * @param number of the round, which decides about the ways
 */
export async function chainOf(pod: RacePod, token: string, levels: number, number: number): Promise<string[]> {
  const tokens = [token];
  for (let level = 0; level < levels; level++) {
    const step = STEPS[(number + level) % STEPS.length] as (typeof STEPS)[number];
    const { status, body } = await step(pod, tokens.at(-1) as string);
    expect(status).toBe(200);
    tokens.push(body.access_token);
  }
  return tokens;
}

/** The access token that a response contains. */
export const tokensOf = ({ body }: TestResponse): string[] => [body?.access_token].filter(Boolean);

/**
 * Uses everything that a response gave, after what it came from has ended, and returns what still works.
 *
 * @param use a request that uses what the response does not contain
 */
export async function survivorsOf(
  world: RaceWorld,
  entityId: string,
  { body, cookies }: TestResponse,
  use?: Making['use'],
): Promise<string[]> {
  const { access_token, identity_transfer_token, refresh_token } = body;
  const [one, two] = world.pods;
  const survivors: string[] = [];
  const isGiven = (response: TestResponse) => response.status === 200 && response.body.entity_id === entityId;
  if (access_token && (await world.isActive(access_token)).includes(true)) survivors.push('access token');
  if (identity_transfer_token && isGiven(await available(() => redeem(two, identity_transfer_token))))
    survivors.push('transfer token');
  if (refresh_token && isGiven(await available(() => refreshCustomer(one, refresh_token))))
    survivors.push('refresh token');
  if (use && isGiven(await available(() => use(two)))) survivors.push('proof');
  const cookie = cookieHeader({ cookies } as TestResponse);
  if (cookie) {
    const visits = await Promise.all(world.pods.map((pod) => available(() => visit(pod, cookie))));
    for (const { status } of visits) expect(status).toBe(200);
    if (visits.some(isGiven)) survivors.push('identity cookies');
  }
  return survivors;
}

/** The access token of an agent for a customer (protocol §4.3). */
export function agentsTokenFor(pod: HttpClient, agent: { authorization: string }, entityId: string) {
  return pod.post(TOKEN, agentTokenBody({ entity_id: entityId }), agent);
}

/** The transfer of a customer by an agent. */
export function agentsTransferOf(pod: HttpClient, agent: { authorization: string }, entityId: string) {
  return pod.post(TRANSFER, transferBody({ bearer_type: 'agent', customer_id: entityId }), agent);
}

export const newUser = () => `user-${randomUUID()}`;
