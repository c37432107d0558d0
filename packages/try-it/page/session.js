// @ts-check

import { cookieGrant, onCustomerChange, storeLastCustomer, TOKEN_PATH } from './demo.js';
import { byId, showResult } from './dom.js';
import { showExchanges } from './exchange-view.js';
import { markStep } from './flows-view.js';
import { showIdentity } from './identity-view.js';
import { problemOf, send, sentenceOf, succeeded } from './service.js';
import { TokenHelper } from './token-helper.js';

/** @typedef {import('./service.js').Exchange} Exchange */

/** The requests of the token helper since the last step began. @type {Exchange[]} */
const requests = [];

export const helper = new TokenHelper(async () => {
  const exchange = await send({ method: 'POST', path: TOKEN_PATH, body: cookieGrant() });
  requests.push(exchange);
  if (!succeeded(exchange)) throw new Error(problemOf(exchange));
  storeLastCustomer(exchange.response?.body.entity_id);
  showIdentity(/** @type {any} */ (exchange.response?.body));
  return exchange.response?.body;
});

onCustomerChange(() => {
  helper.drop();
  showIdentity(undefined);
});

/**
 * Runs a step: its action sends requests, which are then shown next to it, and returns its result.
 * @param {string} name the step, as in the ids `<name>-result` and `<name>-wire`
 * @param {(show: (exchange: Exchange) => Record<string, any>) => Promise<(Node | string)[]>} action `show` adds an
 *   exchange and returns the body of its response; it throws if the response is an error
 */
export async function runStep(name, action) {
  const shown = /** @type {Exchange[]} */ ([]);
  const result = byId(`${name}-result`);
  result.replaceChildren();
  markStep(name);
  requests.length = 0;
  const show = (/** @type {Exchange} */ exchange) => {
    shown.push(exchange);
    if (!succeeded(exchange)) throw new Error(problemOf(exchange));
    return exchange.response?.body ?? {};
  };
  try {
    showResult(result, 'success', ...(await action(show)));
  } catch (error) {
    showResult(result, 'problem', sentenceOf(error));
  } finally {
    const all = [...requests.filter((each) => !shown.includes(each)), ...shown];
    if (all.length > 0) showExchanges(byId(`${name}-wire`), ...all);
  }
}
