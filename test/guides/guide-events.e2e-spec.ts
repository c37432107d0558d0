import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { cookieHeader } from '../support/cookie-grant.js';
import { EVENT_SERVERS, EVENTS_SECRET } from '../support/customer-events.js';
import { listen } from '../support/listen.js';
import { loadExample } from '../support/load-example.js';
import { TestProcess } from '../support/processes.js';
import { PROJECT } from '../support/project-files.js';
import { POLL_PAUSE_MS } from '../support/revocation-feed.js';
import {
  database,
  FROM_PAGE,
  LINK,
  newUser,
  service,
  signInAs,
  startSignInServices,
} from '../support/sign-in-services.js';
import { shortenPauses } from '../support/timers.js';

const { EventConsumer } = await loadExample('events/event-consumer.js');
const { ConversationStore } = await loadExample('events/conversation-store.js');

startSignInServices({ resource_servers: EVENT_SERVERS });
beforeEach(() => shortenPauses(POLL_PAUSE_MS));

let files = 0;
const newPath = () => join(database.folder, `conversations-${++files}.json`);
const consumerOf = (path: string, url = `${service.managementUrl}/oauth2/events`) =>
  new EventConsumer({ url, id: 'acme-events', secret: EVENTS_SECRET, store: new ConversationStore(path) });
/** The customers of the conversations in a file. */
const ownersIn = async (path: string): Promise<Record<string, string>> => {
  const { conversations } = JSON.parse(await readFile(path, 'utf8'));
  return Object.fromEntries(
    Object.entries<{ customerId: string }>(conversations).map(([id, { customerId }]) => [id, customerId]),
  );
};
const untilOwners = (path: string, owners: object) =>
  expect.poll(() => ownersIn(path), { timeout: 15_000 }).toEqual(owners);

async function newVisitor() {
  const response = await service.visit();
  return { id: response.body.entity_id as string, cookie: cookieHeader(response) };
}
/** A known user, and a function that links the customer of a browser to it. */
async function newKnownUser() {
  const sub = newUser();
  const { entity_id } = (await signInAs(sub)).body;
  const link = async (cookie: string) => {
    const { body } = await signInAs(sub, LINK, { ...FROM_PAGE, cookie });
    expect(body.linked_entity_id).toBeTypeOf('string');
  };
  return { id: entity_id as string, link };
}
/** Responds to each request with the next events, and notes what was requested. */
async function serverOf(pages: object[][]): Promise<{ url: string; requested: string[] }> {
  const requested: string[] = [];
  const server = createServer((request, response) => {
    requested.push(`${request.url}`);
    response.end(JSON.stringify({ events: pages.shift() ?? [], cursor: `cursor-${requested.length}`, complete: true }));
  });
  onTestFinished(() => void server.close());
  return { url: `${await listen(server)}/oauth2/events`, requested };
}

describe('events/event-consumer.js', () => {
  it('moves the conversations of a visitor to the user once, and forgets them when the user is erased', async () => {
    const [visitor, other, user] = [await newVisitor(), await newVisitor(), await newKnownUser()];
    const path = newPath();
    const store = new ConversationStore(path);
    await Promise.all([store.add('first', visitor.id), store.add('second', visitor.id), store.add('third', other.id)]);
    const stopping = new AbortController();
    const following = consumerOf(path).follow(stopping.signal);
    await user.link(visitor.cookie);
    await untilOwners(path, { first: user.id, second: user.id, third: other.id });
    await service.erase(user.id);
    await untilOwners(path, { third: other.id });
    stopping.abort();
    await following;
  });

  it('forgets the conversations of a visitor if it learns of the link only after the user was erased', async () => {
    const [visitor, user] = [await newVisitor(), await newKnownUser()];
    const path = newPath();
    await new ConversationStore(path).add('first', visitor.id);
    await user.link(visitor.cookie);
    await service.erase(user.id);
    const consumer = consumerOf(path);
    while (Object.keys(await ownersIn(path)).length > 0) await consumer.readPage(1);
  });

  it('continues where it stopped after a SIGKILL', async () => {
    const path = newPath();
    const env = {
      ...{ PATH: process.env.PATH, STORE: path, EVENTS_URL: `${service.managementUrl}/oauth2/events` },
      ...{ RESOURCE_SERVER_ID: 'acme-events', RESOURCE_SERVER_SECRET: EVENTS_SECRET },
    };
    const start = () =>
      TestProcess.spawn(process.execPath, [join(PROJECT, 'examples/integrating/events/main.js')], env);
    const cursors: string[] = [];
    for (let round = 0; round < 3; round++) {
      const [visitor, user] = [await newVisitor(), await newKnownUser()];
      await new ConversationStore(path).add(`conversation-${round}`, visitor.id);
      const owners = { ...(await ownersIn(path)), [`conversation-${round}`]: user.id };
      await user.link(visitor.cookie);
      const consumer = start();
      await untilOwners(path, owners);
      consumer.signal('SIGKILL');
      await consumer.ended;
      cursors.push(JSON.parse(await readFile(path, 'utf8')).cursor);
    }
    expect(new Set(cursors).size).toBe(3);
    const { url, requested } = await serverOf([]);
    await consumerOf(path, url).readPage();
    expect(new URL(requested[0] ?? '', url).searchParams.get('after')).toBe(cursors[2]);
  });

  it('has the same conversations after each order of events and repeated events, and admits no late ones', async () => {
    const linked = (from: string, into: string) => ({ kind: 'customer.linked', from, into });
    const erased = (entity_id: string) => ({ kind: 'customer.erased', entity_id, time: '2026-11-29T00:00:00.000Z' });
    const events = [linked('visitor', 'user'), linked('other', 'kept'), erased('user'), { kind: 'customer.new_kind' }];
    const orders = events.flatMap((one) =>
      events.flatMap((two) => events.map((three) => [one, two, three, ...events].slice(0, 7))),
    );
    for (const order of orders) {
      const path = newPath();
      const { url } = await serverOf(order.map((event) => [event, event]));
      const consumer = consumerOf(path, url);
      await consumer.store.add('of-visitor', 'visitor');
      await consumer.store.add('of-other', 'other');
      for (const _event of order) await consumer.readPage();
      for (const customer of ['visitor', 'other', 'user'])
        await expect(consumer.store.add('late', customer)).rejects.toThrow('the customer was linked or erased');
      await consumer.store.add('later', 'kept');
      expect(await ownersIn(path)).toEqual({ 'of-other': 'kept', later: 'kept' });
    }
  });

  it('stores neither the conversations nor the cursor of a page if it fails to store both', async () => {
    const path = newPath();
    const { url, requested } = await serverOf([[], [{ kind: 'customer.linked', from: 'visitor', into: 'user' }]]);
    const consumer = consumerOf(path, url);
    await consumer.store.add('first', 'visitor');
    await consumer.readPage();
    const before = await readFile(path, 'utf8');
    await mkdir(`${path}.new`); // no file can be written here
    await expect(consumer.readPage()).rejects.toThrow('EISDIR');
    expect(await readFile(path, 'utf8')).toBe(before);
    await rm(`${path}.new`, { recursive: true });
    await consumer.readPage();
    expect(requested[2]).toBe(requested[1]);
  });

  it('stops with an error if it was away for longer than events are kept', async () => {
    const path = newPath();
    while (!(await consumerOf(path).readPage()).complete);
    const state = JSON.parse(await readFile(path, 'utf8'));
    await writeFile(path, JSON.stringify({ ...state, currentAtMs: state.currentAtMs - 8 * 86_400_000 }));
    const { signal } = new AbortController();
    const [visitor, user] = [await newVisitor(), await newKnownUser()];
    await user.link(visitor.cookie);
    await expect(consumerOf(path).follow(signal)).rejects.toThrow('no events for 8 days: some may be missing');
    const exported = (id: string) => service.admin('GET', `/admin/customers/${id}/export`);
    expect((await exported(visitor.id)).body.tables.customer[0].linked_to).toBe(user.id);
    expect((await exported(user.id)).body.tables.customer[0].linked_to).toBeNull();
  });

  it('logs each failure and tries again, also with a wrong secret', async () => {
    const lines: string[] = [];
    vi.spyOn(process.stderr, 'write').mockImplementation((line) => lines.push(`${line}`) > 0);
    const stopping = new AbortController();
    const consumer = new EventConsumer({
      ...{ url: `${service.managementUrl}/oauth2/events`, id: 'acme-events', secret: 'wrong' },
      store: new ConversationStore(newPath()),
    });
    const following = consumer.follow(stopping.signal);
    await expect.poll(() => lines.join(''), { timeout: 10_000 }).toMatch(/permanent error: events: 401 invalid_client/);
    stopping.abort();
    await following;
  });
});
