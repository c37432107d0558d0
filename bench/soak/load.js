// @ts-check
import { setTimeout as sleep } from 'node:timers/promises';
import { ORGANIZATION, RESOURCE_SERVER } from '../site.js';
import { basic, bearer } from './site.js';

const TICK_MS = 10;

/** Requests that must get an error response: `[message, status, error]`. */
const DELIBERATE_ERRORS = deliberateErrors();

/**
 * The mix of the load: operations with their share in percent.
 *
 * @param {import('./caller.js').Caller} caller
 * @param {import('./customers.js').Customers} customers @param {import('./agents.js').Agents} agents
 * @returns {[number, () => unknown][]}
 */
export function mixOf(caller, customers, agents) {
  return [
    [30, () => customers.comeBack()],
    [10, () => customers.create()],
    [5, () => agents.createCustomer()],
    [10, () => agents.actForCustomer()],
    [7, () => customers.transfer()],
    [2, () => agents.transfer()],
    [9, () => customers.redeem()],
    [8, () => customers.tokens.readInfo()],
    [7, () => customers.tokens.introspect()],
    [1, () => agents.introspect()],
    [1.5, () => customers.tokens.endToken()],
    [1, () => customers.tokens.revoke()],
    [2, () => agents.refresh()],
    [0.5, () => agents.signIn()],
    [2, () => caller.fetchKeys()],
    [4, () => sendDeliberateError(caller)],
  ];
}

/**
 * Starts operations at a fixed rate, also while earlier ones wait for their responses, until `signal` aborts. Then
 * waits for all of them.
 *
 * @param {[number, () => unknown][]} mix @param {number} rate operations per second
 * @param {AbortSignal} signal @param {(error: Error) => void} onError called if an operation throws
 */
export async function runLoad(mix, rate, signal, onError) {
  const total = mix.reduce((sum, [share]) => sum + share, 0);
  const begun = performance.now();
  /** @type {Set<Promise<unknown>>} */
  const running = new Set();
  for (let started = 0; !signal.aborted; await sleep(TICK_MS)) {
    for (const due = ((performance.now() - begun) / 1000) * rate; started < due; started++) {
      const operation = begin(pick())
        .catch(onError)
        .finally(() => running.delete(operation));
      running.add(operation);
    }
  }
  await Promise.all(running);

  function pick() {
    let left = Math.random() * total;
    for (const [share, operation] of mix) {
      left -= share;
      if (left < 0) return operation;
    }
    return () => undefined;
  }
}

/** @param {import('./caller.js').Caller} caller */
function sendDeliberateError(caller) {
  const picked = DELIBERATE_ERRORS[Math.floor(Math.random() * DELIBERATE_ERRORS.length)];
  if (!picked) return undefined;
  const [message, status, error] = picked;
  return caller.send({ operation: 'deliberate errors', ...message, expected: { status, error } });
}

/** @returns {[import('./exchange.js').Message & { surface?: 'management' }, number, string][]} */
function deliberateErrors() {
  const token = { method: 'POST', path: '/v2/customer/token' };
  const info = { method: 'GET', path: '/v2/customer/info' };
  const cookie = { grant_type: 'cookie', client_id: 'site', response_type: 'token', organization_id: ORGANIZATION };
  const unknown = `dev:${'x'.repeat(43)}`;
  const credentials = basic({ ...RESOURCE_SERVER, secret: 'wrong' });
  const introspection = { method: 'POST', path: '/oauth2/introspect', headers: credentials, body: { token: unknown } };
  return [
    [{ ...token, body: { ...cookie, client_id: 'unknown' } }, 400, 'invalid_request'],
    [{ ...token, body: cookie, headers: { origin: 'https://other.example' } }, 400, 'invalid_request'],
    [{ ...token, body: '{' }, 400, 'invalid_request'],
    [{ ...token, body: { ...cookie, grant_type: 'unknown' } }, 400, 'unsupported_grant_type'],
    [{ ...token, body: { client_id: 'site', grant_type: 'identity_token', code: unknown } }, 400, 'invalid_grant'],
    [{ ...info, headers: bearer('dev:damaged') }, 401, 'invalid_token'],
    [info, 401, 'invalid_token'],
    [{ ...introspection, surface: 'management' }, 401, 'invalid_client'],
    [{ method: 'GET', path: '/unknown' }, 404, 'not_found'],
    [{ method: 'PUT', path: '/v2/customer/token' }, 405, 'method_not_allowed'],
  ];
}

/**
 * Starts an operation. Also an exception before its first wait rejects the promise. @param {() => unknown} operation
 */
async function begin(operation) {
  await operation();
}
