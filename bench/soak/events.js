// @ts-check
import { execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { ADMIN_TOKEN, bearer } from './site.js';

const run = promisify(execFile);
/** From a change of the registry until every process has read it. */
const REGISTRY_READ_MS = 10_000;
/** From the crash of the database to its start. */
const CRASH_MS = 2_000;

/**
 * @typedef {object} Event
 * @property {string} name
 * @property {number} from milliseconds since the start
 * @property {number} to
 */

/**
 * The events of the soak and the part of the run after which each one begins.
 *
 * @param {object} soak
 * @param {import('./pods.js').Pods} soak.pods @param {import('./caller.js').Caller} soak.caller
 * @param {import('./customers.js').Customers} soak.customers @param {import('../setup.js').Setup} soak.setup
 * @returns {[number, string, () => Promise<void>][]}
 */
function eventsOf({ pods, caller, customers, setup: { database, environment } }) {
  let created = 0;
  const { records, now } = caller;
  return [
    [0.08, 'registry change', changeRegistry],
    [0.18, 'key rotation', rotateKeys],
    [0.28, 'roll-out', () => pods.rollOut()],
    [0.45, 'database restart', () => outage('database restart', 0, () => database.shutDown())],
    [0.55, 'registry change', changeRegistry],
    [0.62, 'roll-out', () => pods.rollOut()],
    [0.78, 'database crash', () => outage('database crash', CRASH_MS, async () => database.crash())],
    [0.88, 'registry change', changeRegistry],
  ];

  /** @param {string} name @param {number} pauseMs @param {() => Promise<void>} stop */
  async function outage(name, pauseMs, stop) {
    const from = now();
    await stop();
    await sleep(pauseMs);
    await database.restart();
    records.addOutage(name, from, now());
  }

  async function rotateKeys() {
    await run(process.execPath, ['dist/cli.js', 'keys', 'rotate', environment.SIGNING_KEYS_FILE], { env: environment });
  }

  /** Creates a client that customers then use, and creates, changes and deletes another one. */
  async function changeRegistry() {
    const used = `site-${++created}`;
    const deleted = `deleted-${created}`;
    const { ok } = await change('POST', '', { client_id: used, name: 'Used', client_type: 'web' });
    await change('POST', '', { client_id: deleted, name: 'Deleted', client_type: 'web' });
    await change('PATCH', `/${deleted}`, { name: 'Changed' });
    await change('DELETE', `/${deleted}`);
    await sleep(REGISTRY_READ_MS);
    if (ok) customers.clients.push(used);
  }

  /** @param {string} method @param {string} path @param {object} [body] */
  function change(method, path, body) {
    return caller.send({
      operation: 'admin API',
      surface: 'management',
      method,
      path: `/admin/clients${path}`,
      route: path ? '/admin/clients/{key}' : '/admin/clients',
      headers: bearer(ADMIN_TOKEN),
      ...(body && { body }),
    });
  }
}

/**
 * Runs the events one after the other, spread over the run.
 *
 * @param {Parameters<typeof eventsOf>[0]} soak @param {number} durationMs
 * @returns {Promise<Event[]>}
 */
export async function runEvents(soak, durationMs) {
  const { now } = soak.caller;
  /** @type {Event[]} */
  const done = [];
  for (const [part, name, begin] of eventsOf(soak)) {
    await sleep(Math.max(0, part * durationMs - now()));
    const from = now();
    console.log(`${Math.round(from / 1000)} s: ${name}`);
    await begin();
    done.push({ name, from, to: now() });
  }
  await sleep(Math.max(0, durationMs - now()));
  return done;
}
