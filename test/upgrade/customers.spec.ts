import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { race } from '../../src/testing/race.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { SignInSystem } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { implicitToken } from '../support/authorization-page.js';
import { cookieBody, cookieHeader, TestBrowser, TOKEN } from '../support/cookie-grant.js';
import { cookieValue, secretOf } from '../support/identities.js';
import { times } from '../support/races.js';
import { infoStatus } from '../support/transfers.js';
import { both, inTurn, other, pods, startBothReleases } from './both-releases.js';
import { customersOf, EARLIER_USER, groupPath, signInAs } from './release-1-data.js';
import { registryOfRelease1 } from './release-1-registry.js';
import type { Pod, Release } from './upgrade-test-environment.js';

const REQUESTS_PER_RACE = 20;

let acme: SignInSystem;
/** A browser, a customer of an agent and a user that were created before the migration. */
let earlier: { cookie: string; ids: string[]; ofAgent: string; ofUser: string };

startBothReleases(
  async (first) => {
    const agent = bearer(await implicitToken(first));
    earlier = {
      ...(await newBrowser(first)),
      ofAgent: (await first.post(TOKEN, agentTokenBody(), agent)).body.entity_id,
      ofUser: (await signInAs(acme, first, EARLIER_USER)).body.entity_id,
    };
  },
  async () => {
    acme = await SignInSystem.start();
    return registryOfRelease1(acme);
  },
);
afterAll(() => acme?.issuer.stop());

async function newBrowser(pod: Pod): Promise<{ cookie: string; ids: string[] }> {
  const cookie = cookieHeader(await pod.post(TOKEN, cookieBody()));
  return { cookie, ids: await customersOf(pod, cookie) };
}

describe('protocol §9.6: customers while processes of both releases run', () => {
  it('a browser of the time before the migration has the same customers at each process', async () => {
    for (const pod of [...both(), ...both()]) expect(await customersOf(pod, earlier.cookie)).toEqual(earlier.ids);
  });

  it.each<Release>([1, 2])(
    'a browser that release %i creates has the same customers at each process',
    async (release) => {
      const { cookie, ids } = await newBrowser(pods[release]);
      expect(new Set(ids).size).toBe(ids.length);
      for (const pod of [other(release), ...both()]) expect(await customersOf(pod, cookie)).toEqual(ids);
    },
  );

  it('a browser that alternates between the releases stays the same customer and keeps its secret', async () => {
    const browser = new TestBrowser(pods[1]);
    const first = await browser.visit();
    for (let round = 0; round < 6; round++) {
      const next = new TestBrowser(inTurn(round));
      next.cookie = browser.cookie;
      const response = await next.visit();
      browser.cookie = next.cookie;
      expect([response.body.entity_id, secretOf(response)]).toEqual([first.body.entity_id, secretOf(first)]);
    }
  });

  it('a browser that sends the pairs of both releases has one customer, in either order', async () => {
    const [first, second] = [await pods[1].post(TOKEN, cookieBody()), await pods[2].post(TOKEN, cookieBody())];
    const again = await pods[2].post(TOKEN, cookieBody(), { cookie: cookieHeader(first) });
    expect(cookieValue(again.cookies[0])).toBe(first.body.entity_id);
    for (const pairs of [
      [first, again],
      [again, first],
    ]) {
      const cookie = pairs.map(cookieHeader).join('; ');
      for (const pod of both())
        expect((await pod.post(TOKEN, cookieBody(), { cookie })).body.entity_id).toBe(first.body.entity_id);
    }
    const mixed = `__svc_cid=${first.body.entity_id}; __svc_cst=${secretOf(second)}`;
    for (const pod of both()) {
      const { body } = await pod.post(TOKEN, cookieBody(), { cookie: mixed });
      expect([first.body.entity_id, second.body.entity_id]).not.toContain(body.entity_id);
    }
  });

  it('parallel first calls to both releases create one customer in a group', async () => {
    for (let round = 0; round < 10; round++) {
      const cookie = cookieHeader(await inTurn(round).post(TOKEN, cookieBody()));
      const path = groupPath(randomUUID());
      const text = JSON.stringify(cookieBody());
      const responses = await race(both(), path, text, REQUESTS_PER_RACE, { cookie });
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
    }
  });

  it.each<Release>([1, 2])(
    'a customer that an agent creates at release %i gets tokens from each process',
    async (release) => {
      const agent = bearer(await implicitToken(pods[release]));
      const { entity_id } = (await pods[release].post(TOKEN, agentTokenBody(), agent)).body;
      for (const id of [entity_id, earlier.ofAgent]) {
        for (const pod of both()) {
          const { status, body } = await pod.post(TOKEN, agentTokenBody({ entity_id: id }), agent);
          expect([status, body.entity_id]).toEqual([200, id]);
          for (const each of both()) expect(await infoStatus(each, body.access_token)).toBe(200);
        }
      }
    },
  );

  it('a user of the JWT bearer grant has one customer at each process, also after parallel first calls', async () => {
    for (const pod of both()) expect((await signInAs(acme, pod, EARLIER_USER)).body.entity_id).toBe(earlier.ofUser);
    for (let round = 0; round < 10; round++) {
      const user = randomUUID();
      const responses = await times(REQUESTS_PER_RACE, (index) => signInAs(acme, inTurn(index), user));
      expect(responses.map(({ status }) => status)).toEqual(Array(REQUESTS_PER_RACE).fill(200));
      expect(new Set(responses.map(({ body }) => body.entity_id)).size).toBe(1);
    }
  });
});
