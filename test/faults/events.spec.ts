import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { bearerBody, registryWithSignIn, SignInSystem } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, cookieHeader, TOKEN } from '../support/cookie-grant.js';
import type { ReadEvent } from '../support/customer-events.js';
import { manage } from '../support/management-api.js';
import type { ServiceProcess } from '../support/processes.js';
import { LINK } from '../support/sign-in-services.js';
import { ACME, ACME_ORIGIN, writeRegistry } from '../support/test-registry.js';
import { request, type TestResponse } from '../support/test-service.js';
import { FaultTestEnvironment, untilServing } from './faults.js';

const ROUND_COUNT = 20;
const CALLER_COUNT = 6;
const ADMIN_TOKEN = 'operator-of-the-fault-tests-0123456789';
const AS_OPERATOR = bearer(ADMIN_TOKEN);

/** A change, and its event without id and time. */
interface Change {
  event: Omit<ReadEvent, 'id' | 'time'>;
  /** 200 if it was confirmed; otherwise it may have happened. */
  status: number | undefined;
}

let environment: FaultTestEnvironment;
let issuer: SignInSystem;
/** The tests end and replace the first one. */
const processes: ServiceProcess[] = [];
let isStopping = false;
const changes: Change[] = [];
const events: ReadEvent[] = [];

async function start(): Promise<ServiceProcess> {
  const registry = registryWithSignIn({
    [ACME]: { issuer: 'https://login.example', jwks: issuer.jwks, link_browsers: true },
  });
  const REGISTRY_FILE = writeRegistry(`${environment.folder}/sign-in.yaml`, registry);
  return environment.start({ REGISTRY_FILE, ADMIN_TOKENS: `operator:all:${ADMIN_TOKEN}` });
}

beforeAll(async () => {
  issuer = await SignInSystem.start();
  environment = await FaultTestEnvironment.build();
  processes.push(await start(), await start());
});
afterAll(async () => {
  await issuer?.issuer.stop();
  await environment?.remove();
});

const anyProcess = () => processes[Math.floor(Math.random() * processes.length)] as ServiceProcess;

/** `undefined` without a response. */
const send = (post: object, cookie?: string): Promise<TestResponse | undefined> =>
  request(anyProcess().url + TOKEN, {
    method: 'POST',
    headers: { origin: ACME_ORIGIN, ...(cookie && { cookie }) },
    body: JSON.stringify(post),
  }).catch(() => undefined);
const asOperator = (method: string, path: string): Promise<TestResponse | undefined> =>
  manage(anyProcess() as never, method, `/admin/customers/${path}`, AS_OPERATOR).catch(() => undefined);

async function newVisitor(): Promise<{ entityId: string; cookie: string } | undefined> {
  const response = await send(cookieBody());
  return response?.status === 200 ? { entityId: response.body.entity_id, cookie: cookieHeader(response) } : undefined;
}
const signIn = async (sub: string, more: object = {}, cookie?: string) =>
  send(bearerBody(await issuer.assert(Date.now(), { iss: 'https://login.example', sub }), more), cookie);

/** Lets customers be linked, become users, end their sessions and be erased, until the test stops. */
async function change(): Promise<void> {
  while (!isStopping) {
    const note = (event: object, response: TestResponse | undefined) =>
      changes.push({ event: { organization_id: ACME, ...event } as never, status: response?.status });
    const [visitor, newcomer] = [await newVisitor(), await newVisitor()];
    const sub = randomUUID();
    const user = await signIn(sub);
    if (visitor && user?.status === 200) {
      const link = { kind: 'customer.linked', from: visitor.entityId, into: user.body.entity_id };
      note(link, await signIn(sub, LINK, visitor.cookie));
    }
    if (!newcomer) continue;
    const { entityId: entity_id, cookie } = newcomer;
    note({ kind: 'customer.became_user', entity_id }, await signIn(randomUUID(), LINK, cookie));
    note({ kind: 'customer.sessions_ended', entity_id }, await asOperator('POST', `${entity_id}/end_sessions`));
    const erased = await newVisitor();
    if (!erased) continue;
    note({ kind: 'customer.erased', entity_id: erased.entityId }, await asOperator('DELETE', erased.entityId));
  }
}

/** Follows the events at any process, as a consumer would. */
async function follow(until: () => boolean): Promise<void> {
  for (let cursor = ''; !until(); ) {
    const path = `/oauth2/events?wait=1&after=${cursor}`;
    const page = await manage(anyProcess() as never, 'GET', path, AS_OPERATOR).catch(() => undefined);
    if (page?.status !== 200) {
      await sleep(100);
      continue;
    }
    events.push(...page.body.events);
    cursor = page.body.cursor;
  }
}

const textOf = ({ id: _id, time: _time, ...event }: Partial<ReadEvent>) =>
  JSON.stringify(Object.entries(event).sort(([one], [other]) => (one < other ? -1 : 1)));

it('protocol §7.8: no event is lost or invented if the service and the database are killed with SIGKILL again and again', async () => {
  let isRead = false;
  const following = follow(() => isRead);
  const callers = Array.from({ length: CALLER_COUNT }, change);
  for (let round = 0; round < ROUND_COUNT; round++) {
    await sleep(500);
    processes[0]?.process.signal('SIGKILL');
    await sleep(Math.random() * 300);
    environment.mariadb.crash();
    await environment.mariadb.restart();
    processes.splice(0, 1, await start());
    await untilServing(processes[0] as ServiceProcess);
  }
  isStopping = true;
  await Promise.all(callers);
  const confirmed = changes.filter(({ status }) => status === 200).map(({ event }) => textOf(event));
  const missing = () => {
    const read = new Set(events.map(textOf));
    return confirmed.filter((text) => !read.has(text));
  };
  await expect.poll(missing, { timeout: 30_000 }).toEqual([]);
  await sleep(2_000);
  isRead = true;
  await following;
  const requested = new Set(changes.map(({ event }) => textOf(event)));
  expect(events.map(textOf).filter((text) => !requested.has(text))).toEqual([]);
  const counts: Record<string, number> = {};
  for (const { status = 'none' } of changes) counts[status] = (counts[status] ?? 0) + 1;
  process.stdout.write(`${JSON.stringify({ changes: counts, events: events.length })}\n`);
  expect(confirmed.length).toBeGreaterThan(100);
  expect(new Set(changes.map(({ status }) => status))).not.toEqual(new Set([200]));
  await expectHappened();
}, 300_000);

/** A change whose response was lost has an event exactly if it has happened. */
async function expectHappened(): Promise<void> {
  const read = new Set(events.map(textOf));
  for (const { event } of changes.filter(({ status }) => status !== 200)) {
    const { kind, from = '', into = '', entity_id = '' } = event;
    if (kind !== 'customer.linked' && kind !== 'customer.erased') continue;
    const response = await asOperator('GET', kind === 'customer.linked' ? into : entity_id);
    const hasHappened =
      kind === 'customer.linked' ? response?.body.linked_ids?.includes(from) === true : response?.status === 404;
    expect([event, read.has(textOf(event))]).toEqual([event, hasHappened]);
  }
}
