// @ts-check
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** From the moment when the database serves again until every process has connected to it. */
const RECONNECT_MS = 5_000;

/**
 * @typedef {object} Failure a request without a 2xx or 3xx response that no operation expects
 * @property {string} operation
 * @property {string} route
 * @property {number} status 0 if there is no response
 * @property {string} error
 * @property {string} requestId
 * @property {number} from when the request was sent, in milliseconds since the start
 * @property {number} to when the response or the end of the connection arrived
 *
 * @typedef {{ route: string, status: number | string, error: string, reason: string, explanation: string, count: number
 * }} Cause
 * @typedef {{ requests: number, succeeded: number, expected: number, durations: number[] }} Figures of one operation
 */

/** Every response of the soak: counts, failures and wrong responses. */
export class Records {
  /** @type {Map<string, Figures>} */
  operations = new Map();
  /** @type {string[]} */
  wrong = [];
  /** @type {Failure[]} */
  #failures = [];
  /** @type {Map<string, number>} deliberate errors by route, status and error */
  #expected = new Map();
  /** @type {{ name: string, from: number, to: number }[]} */
  #outages = [];

  /**
   * @param {Omit<Failure, 'requestId' | 'error'>} sent
   * @param {import('./exchange.js').Reply} reply
   * @param {{ status: number, error: string } | undefined} expected the error response that the request must get
   */
  add(sent, reply, expected) {
    const figures = this.operations.get(sent.operation) ?? { requests: 0, succeeded: 0, expected: 0, durations: [] };
    this.operations.set(sent.operation, figures);
    figures.requests++;
    figures.durations.push(sent.to - sent.from);
    const error = reply.lost ?? reply.json?.error ?? '';
    if (expected && reply.status === expected.status && error === expected.error) {
      const key = [sent.route, reply.status, error].join('\t');
      this.#expected.set(key, (this.#expected.get(key) ?? 0) + 1);
      figures.expected++;
    } else if (reply.status >= 200 && reply.status < 400) {
      figures.succeeded++;
      if (expected) this.reportWrong(sent.operation, `got ${reply.status} in place of ${expected.status}`);
    } else this.#failures.push({ ...sent, error, requestId: reply.requestId });
  }

  /** Records a response with a wrong content. @param {string} operation @param {string} what */
  reportWrong(operation, what) {
    this.wrong.push(`${operation}: ${what}`);
  }

  /** @param {string} name @param {number} from @param {number} to when the database served again */
  addOutage(name, from, to) {
    this.#outages.push({ name, from, to: to + RECONNECT_MS });
  }

  /**
   * The number of 503 responses between two moments, and the moment of the last one.
   *
   * @param {number} from @param {number} to
   */
  unavailable(from, to) {
    const those = this.#failures.filter((each) => each.status === 503 && each.to >= from && each.to < to);
    return { count: those.length, last: Math.max(from, ...those.map((each) => each.to)) };
  }

  /**
   * The error responses and lost requests, by cause. The logs have the reasons.
   *
   * @param {string[]} logs @returns {Promise<Cause[]>}
   */
  async causes(logs) {
    const reasons = await reasonsIn(logs, new Set(this.#failures.map(({ requestId }) => requestId)));
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const [key, count] of this.#expected) counts.set(`${key}\t\tdeliberate`, count);
    for (const failure of this.#failures) {
      const { route, status, error, requestId } = failure;
      const reason = reasons.get(requestId) ?? '';
      const key = [route, status || 'none', error, reason, this.#explanationOf(failure)].join('\t');
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts].map(([key, count]) => {
      const [route = '', status = '', error = '', reason = '', explanation = ''] = key.split('\t');
      return { route, status, error, reason, explanation, count };
    });
  }

  /** Only a 503 can be explained by an outage. @param {Failure} failure */
  #explanationOf({ status, from, to }) {
    if (status !== 503) return '';
    return this.#outages.find((outage) => to >= outage.from && from <= outage.to)?.name ?? '';
  }
}

/**
 * The reason or the cause in the log line of each request.
 *
 * @param {string[]} logs @param {Set<string>} requestIds
 * @returns {Promise<Map<string, string>>}
 */
async function reasonsIn(logs, requestIds) {
  const reasons = new Map();
  for (const log of logs) {
    for await (const line of createInterface({ input: createReadStream(log) })) {
      if (!/"status":[45]/.test(line)) continue;
      const { request_id, reason, cause } = JSON.parse(line);
      if (requestIds.has(request_id)) reasons.set(request_id, withoutValues(String(reason ?? cause ?? '')));
    }
  }
  return reasons;
}

/** The first line of a reason, without values that differ from request to request. @param {string} text */
function withoutValues(text) {
  const [line = ''] = text.split('\n', 1);
  return line
    .replaceAll('\t', ' ')
    .replace(/\d[\d.]* ms/, '… ms')
    .replace(/:\d+$/, '');
}
