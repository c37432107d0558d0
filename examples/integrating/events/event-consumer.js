import { setTimeout as sleep } from 'node:timers/promises';
import { logError, readResult } from '../fetch-with-retries.js';
import { assignOwners } from './conversation-store.js';

const KINDS = 'customer.linked,customer.erased';
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const WAIT_SECONDS = 25;
const TIMEOUT_MS = 30_000;
const PAUSE_SECONDS = 1;
const DAY_MS = 86_400_000;

/** Follows the events of the service, and applies them to the store. */
export class EventConsumer {
  /**
   * @param options `url` of the route, `id` of the resource server with its `secret`, or with a function `assertion` that
   * resolves to an assertion, `store`, and EVENT_DAYS of the operator
   */
  constructor({ url, id, secret, assertion, store, eventDays = 7 }) {
    Object.assign(this, { url, id, secret, assertion, store, eventDays });
  }

  /** Reads and applies pages until `signal` aborts. Rejects if the consumer was away for longer than events are kept. */
  async follow(signal) {
    while (!signal.aborted) {
      await this.#assertNothingMissed();
      try {
        const { events, complete } = await this.readPage(WAIT_SECONDS, signal);
        if (events.length === 0 && !complete) await sleep(PAUSE_SECONDS * 1000);
      } catch (error) {
        if (signal.aborted) return;
        logError(error);
        if (error.hint?.startsWith('after:')) await this.store.update((state) => delete state.cursor);
        await sleep((error.retryAfterSeconds ?? PAUSE_SECONDS) * 1000);
      }
    }
  }

  /** Applies one page, and stores the new cursor in the same step. Resolves to the page. */
  async readPage(waitSeconds = 0, signal = undefined) {
    const { cursor } = await this.store.read();
    const parameters = { kinds: KINDS, wait: waitSeconds, ...(cursor && { after: cursor }) };
    const signals = [AbortSignal.timeout(TIMEOUT_MS), signal].filter(Boolean);
    const response = await this.#request(parameters, AbortSignal.any(signals));
    const page = await readResult(response, 'events');
    await this.store.update((state) => {
      for (const event of page.events) note(state, event);
      assignOwners(state);
      state.cursor = page.cursor;
      if (page.complete) state.currentAtMs = Date.now();
    });
    return page;
  }

  /** An assertion is in the body, because access logs contain the URL. */
  async #request(parameters, signal) {
    if (!this.assertion) {
      const credentials = [this.id, this.secret].map(encodeURIComponent).join(':');
      const headers = { Authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
      return fetch(`${this.url}?${new URLSearchParams(parameters)}`, { headers, signal });
    }
    const client_assertion = await this.assertion();
    const proof = { client_id: this.id, client_assertion_type: ASSERTION_TYPE, client_assertion };
    return fetch(this.url, { method: 'POST', body: new URLSearchParams({ ...parameters, ...proof }), signal });
  }

  async #assertNothingMissed() {
    const { currentAtMs = Date.now() } = await this.store.read();
    const awayDays = (Date.now() - currentAtMs) / DAY_MS;
    if (awayDays >= this.eventDays) throw new Error(`no events for ${Math.round(awayDays)} days: some may be missing`);
  }
}

/** Ignores kinds that it does not know. */
function note({ links, erased }, { kind, from, into, entity_id, time }) {
  if (kind === 'customer.linked') links[from] = into;
  if (kind === 'customer.erased') erased[entity_id] = time;
}
