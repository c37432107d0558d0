import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect } from 'vitest';
import { agentTokenBody } from '../support/agent-tokens.js';
import { SIGN_IN, SignInSystem, signIn } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { type Move, moveOf } from '../support/remember.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { agentTokenPair } from '../support/transfers.js';
import { pods, startBothReleases } from './both-releases.js';
import { registryOfRelease1 } from './release-1-registry.js';
import { manage, type Pod } from './upgrade-test-environment.js';

export const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };
/** A client that the registry file does not list, so that the operator can change it at once. */
export const PHONE_SITE = 'phone-site';
const PHONE_ORIGIN = 'https://phone.example';
export const FROM_PHONE = { body: { client_id: PHONE_SITE }, headers: { origin: PHONE_ORIGIN } };
/** The setting with which a client may send `remember: "browser"`. */
export const REMEMBERING = { identity_token: { remember: ['browser'] } };
export const EARLIER_USER = 'earlier user';

export const groupPath = (id: string): string => `/v2/customer/${ACME}/${id}/token`;

/** Each scope in which the browsers of the tests have a customer: Acme, a group of Acme, and Rival. */
const SCOPES: [body: object, path: string][] = [
  [{}, TOKEN],
  [{}, groupPath('a')],
  [AT_RIVAL, TOKEN],
];

/** The customers of a browser in each scope. Creates those that do not exist. */
export async function customersOf(pod: Pod, cookie: string): Promise<string[]> {
  const ids: string[] = [];
  for (const [body, path] of SCOPES) {
    const response = await pod.post(path, cookieBody(body), { cookie });
    expect(response.status).toBe(200);
    ids.push(response.body.entity_id);
  }
  return ids;
}

export async function signInAs(acme: SignInSystem, pod: Pod, sub: string): Promise<TestResponse> {
  return signIn(pod, await acme.assert(Date.now(), { sub }), { client_id: SIGN_IN });
}

/** What a process of release 1 has created and ended before the migration. */
interface Release1Data {
  /** A browser with a customer in each scope. `token` is for the first one. */
  browser: { cookie: string; token: string; ids: string[] };
  endedToken: string;
  userCustomer: string;
  /** Transfer tokens for the first customer of the browser. */
  moves: [Move, Move];
  /** A transfer token for the customer in the group. */
  groupMove: Move;
  agentPair: { access_token: string; refresh_token: string };
}

async function createRelease1Data(pod: Pod, acme: SignInSystem): Promise<Release1Data> {
  await createPhoneSite(pod);
  const visit = await pod.post(TOKEN, cookieBody());
  const cookie = cookieHeader(visit);
  const token = visit.body.access_token;
  const inGroup = await pod.post(groupPath('a'), cookieBody(), { cookie });
  const moveTo = (of: string) => moveOf(pod, of, { client_id: PHONE_SITE });
  const endedToken = (await pod.post(TOKEN, cookieBody())).body.access_token;
  expect((await pod.send('DELETE', TOKEN, bearer(endedToken))).status).toBe(200);
  return {
    browser: { cookie, token, ids: await customersOf(pod, cookie) },
    endedToken,
    userCustomer: (await signInAs(acme, pod, EARLIER_USER)).body.entity_id,
    moves: [await moveTo(token), await moveTo(token)],
    groupMove: await moveTo(inGroup.body.access_token),
    agentPair: await agentTokenPair(pod),
  };
}

async function createPhoneSite(pod: Pod): Promise<void> {
  const client = { client_id: PHONE_SITE, name: 'Phone', client_type: 'web', organization_id: ACME };
  const redirect_uris = [`${PHONE_ORIGIN}/`];
  expect((await manage(pod, 'POST', '/admin/clients', { ...client, redirect_uris })).status).toBe(201);
  while ((await pod.post(TOKEN, cookieBody({ client_id: PHONE_SITE }))).status !== 200) await sleep(100);
}

export let acme: SignInSystem;
export let data: Release1Data;

/** Starts processes of both releases, and lets the client of the phone send `remember`. */
export function startWithRelease1Data(): void {
  const createData = async (first: Pod) => {
    data = await createRelease1Data(first, acme);
  };
  startBothReleases(createData, async () => {
    acme = await SignInSystem.start();
    return registryOfRelease1(acme);
  });
  beforeAll(async () => {
    const change = { grants: REMEMBERING };
    expect((await manage(pods[2], 'PATCH', `/admin/clients/${PHONE_SITE}`, change)).status).toBe(200);
  });
  afterAll(() => acme?.issuer.stop());
}

/** The agent token grant with an `external_id`. */
export function withExternalId(pod: Pod, external_id: string): Promise<TestResponse> {
  return pod.post(TOKEN, agentTokenBody({ external_id }), bearer(data.agentPair.access_token));
}

export function forget(pod: Pod, cookie: string): Promise<TestResponse> {
  return pod.post('/v2/customer/forget', { client_id: ACME_SITE, organization_id: ACME }, { cookie });
}
