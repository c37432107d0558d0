import { describe, expect, it } from 'vitest';
import { RIVAL_SIGN_IN, SIGN_IN } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieHeader } from '../../support/cookie-grant.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { moveOf, remember } from '../../support/remember.js';
import {
  FROM_PAGE,
  LINK,
  newUser,
  REMEMBER,
  service,
  signInAs,
  startSignInServices,
} from '../../support/sign-in-services.js';
import { ACME, ACME_ORIGIN, RIVAL } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';

startSignInServices();

const AT_ACME = { client_id: SIGN_IN };
const AT_RIVAL = { client_id: RIVAL_SIGN_IN, organization_id: RIVAL };
const fromPage = (cookie: string) => ({ ...FROM_PAGE, cookie });

/** A browser with a customer in each of two organizations. */
async function newBrowser() {
  const first = await service.visit();
  const cookie = cookieHeader(first);
  return { cookie, entityId: first.body.entity_id as string, elsewhereId: await service.idOf(cookie, AT_RIVAL) };
}

const signedIn = async (cookie: string, sub = newUser(), more: object = REMEMBER): Promise<TestResponse> => {
  const response = await signInAs(sub, more, fromPage(cookie));
  expect(response.status).toBe(200);
  return response;
};
const transferred = async (cookie: string): Promise<TestResponse> => {
  const { access_token } = (await service.visit()).body;
  const move = await moveOf(service, access_token, AT_ACME);
  const response = await remember(service, move, { cookie, body: { ...AT_ACME, replace: true } });
  expect(response.status).toBe(200);
  return response;
};
const linkedToKnown = async (cookie: string): Promise<TestResponse> => {
  const sub = newUser();
  await signInAs(sub, REMEMBER, FROM_PAGE);
  return signedIn(cookie, sub, LINK);
};
const forget = (cookie: string) =>
  service.post('/v2/customer/forget', { ...AT_ACME, organization_id: ACME }, { cookie, origin: ACME_ORIGIN });
const endSessions = ({ body }: TestResponse, cookie: string) =>
  service.post('/v2/customer/end_sessions', { browsers: true }, { ...bearer(body.access_token), ...fromPage(cookie) });

/** What gives a browser a new pair, and whether the customer of its earlier pair stays. */
const CHANGES: [string, (cookie: string) => Promise<TestResponse>, stays: boolean][] = [
  ['a sign-in', (cookie) => signedIn(cookie), true],
  ['a transfer that it remembers', transferred, true],
  ['a sign-in of a new user with link', (cookie) => signedIn(cookie, newUser(), LINK), false],
  ['a sign-in of a known user with link', linkedToKnown, false],
];

describe.each(CHANGES)('protocol §5.6: the earlier pair of a browser after %s', (_, change, stays) => {
  it('leads to the customer of before if that one stays, and never to the new one', async () => {
    const { cookie, entityId } = await newBrowser();
    const changed = await change(cookie);
    const earlier = await service.idOf(cookie);
    if (stays) expect(earlier).toBe(entityId);
    else expect(earlier).not.toBe(entityId);
    if (stays || changed.body.entity_id !== entityId) expect(earlier).not.toBe(changed.body.entity_id);
    expect(await service.idOf(cookieHeader(changed))).toBe(changed.body.entity_id);
  });

  it('leads to the customer of another organization, as the new pair does', async () => {
    const { cookie, elsewhereId } = await newBrowser();
    const changed = await change(cookie);
    expect(await service.idOf(cookie, AT_RIVAL)).toBe(elsewhereId);
    expect(await service.idOf(cookieHeader(changed), AT_RIVAL)).toBe(elsewhereId);
  });

  it('is forgotten without the new pair, and the new pair without it', async () => {
    const { cookie, entityId } = await newBrowser();
    const changed = await change(cookie);
    expect((await forget(cookie)).status).toBe(200);
    expect(await service.idOf(cookieHeader(changed))).toBe(changed.body.entity_id);
    expect(await service.idOf(cookie)).not.toBe(entityId);
    const ofEarlier = await service.idOf(cookie);
    expect((await forget(cookieHeader(changed))).status).toBe(200);
    expect(await service.idOf(cookie)).toBe(ofEarlier);
    expect(await service.idOf(cookieHeader(changed))).not.toBe(changed.body.entity_id);
  });

  it('does not allow end_sessions with browsers for the new customer', async () => {
    const { cookie } = await newBrowser();
    const user = await signedIn(cookieHeader(await change(cookie)));
    expectInvalidRequest(await endSessions(user, cookie), /^browsers: /);
    expect((await endSessions(user, cookieHeader(user))).status).toBe(200);
  });

  it('signs a user in and remembers a transfer as any browser does', async () => {
    const { cookie } = await newBrowser();
    await change(cookie);
    const again = await signedIn(cookie);
    expect(await service.idOf(cookieHeader(again))).toBe(again.body.entity_id);
    const moved = await transferred(cookie);
    expect(await service.idOf(cookieHeader(moved))).toBe(moved.body.entity_id);
  });

  it('gives a pair of its own to each of two tabs that do it at once', async () => {
    const { cookie, elsewhereId } = await newBrowser();
    const [one, other] = await Promise.all([change(cookie), change(cookie)]);
    for (const changed of [one, other]) {
      expect(await service.idOf(cookieHeader(changed))).toBe(changed.body.entity_id);
      expect(await service.idOf(cookieHeader(changed), AT_RIVAL)).toBe(elsewhereId);
    }
  });

  it('loses nothing if the response with the new pair is lost and the browser tries again', async () => {
    const { cookie, elsewhereId } = await newBrowser();
    await change(cookie);
    const again = await change(cookie);
    expect(await service.idOf(cookieHeader(again))).toBe(again.body.entity_id);
    expect(await service.idOf(cookieHeader(again), AT_RIVAL)).toBe(elsewhereId);
  });
});
