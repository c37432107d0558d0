import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { claimsOf, refresh } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import { remember } from '../support/remember.js';
import { infoStatus } from '../support/transfers.js';
import { pods, testEnvironment } from './both-releases.js';
import {
  AT_RIVAL,
  acme,
  customersOf,
  data,
  EARLIER_USER,
  FROM_PHONE,
  forget,
  signInAs,
  startWithRelease1Data,
  withExternalId,
} from './release-1-data.js';

startWithRelease1Data();

describe('protocol §9.6: after migrate --complete', () => {
  beforeAll(async () => {
    expect(await pods[1].terminate()).toBe(0);
    expect(await testEnvironment.run(2, 'migrate', '--complete')).toBe('complete\n');
    expect(await testEnvironment.run(2, 'migrate', '--complete')).toBe('was complete already\n');
  });

  it('a process that starts logs no warning', async () => {
    const started = await testEnvironment.start(2);
    expect(started.process.stdout).not.toContain('migrate --complete');
    expect(await started.terminate()).toBe(0);
  });

  it('the tokens, the refresh family and the revocations of release 1 hold', async () => {
    expect(await infoStatus(pods[2], data.browser.token)).toBe(200);
    expect(await infoStatus(pods[2], data.endedToken)).toBe(401);
    const refreshed = await refresh(pods[2], data.agentPair.refresh_token);
    expect(refreshed.status).toBe(200);
    data.agentPair = refreshed.body;
  });

  it('external_id finds the user of release 1, and creates others once', async () => {
    const known = await withExternalId(pods[2], EARLIER_USER);
    expect([known.body.entity_id, known.body.created]).toEqual([data.userCustomer, false]);
    const id = randomUUID();
    const [made, again] = [await withExternalId(pods[2], id), await withExternalId(pods[2], id)];
    expect([made.body.created, again.body.created]).toEqual([true, false]);
    expect([again.body.entity_id, (await signInAs(acme, pods[2], id)).body.entity_id]).toEqual(
      Array(2).fill(made.body.entity_id),
    );
  });

  it('a transfer token of release 1 moves its customer to a second browser, whose other customers stay', async () => {
    const phone = cookieHeader(await pods[2].post(TOKEN, cookieBody(AT_RIVAL)));
    const [, , ofRival] = await customersOf(pods[2], phone);
    const replace = { ...FROM_PHONE, cookie: phone, body: { ...FROM_PHONE.body, replace: true } };
    const moved = await remember(pods[2], data.moves[0], replace);
    expect([moved.status, moved.body.entity_id]).toEqual([200, data.browser.ids[0]]);
    const pairs = cookieHeader(moved);
    const [inAcme, , inRival] = await customersOf(pods[2], pairs);
    expect([inAcme, inRival]).toEqual([data.browser.ids[0], ofRival]);
    expect(await customersOf(pods[2], data.browser.cookie)).toEqual(data.browser.ids);
  });

  it('a transfer token of release 1 for a customer in a group leads to this customer in the group', async () => {
    const moved = await remember(pods[2], data.groupMove, FROM_PHONE);
    expect([moved.body.entity_id, claimsOf(moved.body.access_token).group_id]).toEqual([data.browser.ids[1], 'a']);
    expect((await customersOf(pods[2], cookieHeader(moved)))[1]).toBe(data.browser.ids[1]);
  });

  it('a browser link from a token of release 1 ends with this token', async () => {
    const { access_token, entity_id } = (await pods[2].post(TOKEN, cookieBody(), { cookie: data.browser.cookie })).body;
    expect(entity_id).toBe(data.browser.ids[0]);
    const linked = await remember(pods[2], data.moves[1], FROM_PHONE);
    expect((await customersOf(pods[2], cookieHeader(linked)))[0]).toBe(entity_id);
    expect((await pods[2].send('DELETE', TOKEN, bearer(data.browser.token))).status).toBe(200);
    expect((await customersOf(pods[2], cookieHeader(linked)))[0]).not.toBe(entity_id);
    expect(await infoStatus(pods[2], access_token)).toBe(200);
    expect(await customersOf(pods[2], data.browser.cookie)).toEqual(data.browser.ids);
  });

  it('a purge deletes no customer of release 1', async () => {
    await testEnvironment.run(2, 'purge');
    expect(await customersOf(pods[2], data.browser.cookie)).toEqual(data.browser.ids);
    expect((await signInAs(acme, pods[2], EARLIER_USER)).body.entity_id).toBe(data.userCustomer);
  });

  it('a browser of release 1 can be forgotten in one organization', async () => {
    expect((await forget(pods[2], data.browser.cookie)).status).toBe(200);
    const [inAcme, inGroup, inRival] = await customersOf(pods[2], data.browser.cookie);
    expect(data.browser.ids).not.toContain(inAcme);
    expect(data.browser.ids).not.toContain(inGroup);
    expect(inRival).toBe(data.browser.ids[2]);
  });
});
