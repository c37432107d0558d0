// @ts-check
/** The ids of the demo registry, and the URLs of the pages. */

import { byId } from './dom.js';
import { sentenceOf } from './service.js';

const { authUrl = '', clientId = '', organizationId = '' } = document.body.dataset;

export const DEMO = { authUrl, clientId, organizationId };
export const TOKEN_PATH = '/v2/customer/token';
export const SECOND_BROWSER_URL = `${authUrl}/try/second-browser`;

/** The customer that the first browser had last. Only the id is stored, and never a token. */
const CUSTOMER_ITEM = 'try-it customer';

/**
 * Starts a page. Shows a notice if the page was opened at another origin than that of the demo clients, or if the
 * browser refuses what the page needs.
 * @param {() => Promise<void> | void} connect
 */
export async function startPage(connect) {
  byId('other-origin').hidden = location.origin === authUrl;
  if (location.origin !== authUrl) return;
  try {
    await connect();
  } catch (error) {
    byId('refused').textContent = sentenceOf(error);
    byId('refused').hidden = false;
  }
}

export const lastCustomer = () => localStorage.getItem(CUSTOMER_ITEM);

/** @param {string | undefined} entityId */
export function storeLastCustomer(entityId) {
  if (entityId === undefined) localStorage.removeItem(CUSTOMER_ITEM);
  else localStorage.setItem(CUSTOMER_ITEM, entityId);
}

/** Calls a function when another tab has another customer than this browser had before. @param {() => void} work */
export function onCustomerChange(work) {
  addEventListener('storage', ({ key }) => {
    if (key === CUSTOMER_ITEM) work();
  });
}

/** The body of the cookie grant (protocol §4.1). */
export const cookieGrant = () => ({
  grant_type: 'cookie',
  client_id: clientId,
  response_type: 'token',
  organization_id: organizationId,
});

/**
 * The parameters in the fragment of a pasted or opened link.
 * @param {string} link
 */
export function fragmentOf(link) {
  const [, fragment = ''] = link.trim().split('#', 2);
  return new URLSearchParams(fragment);
}

/** Reads the parameters of the page's own URL, and removes them from the address bar and the history. */
export function takeFragment() {
  const parameters = fragmentOf(location.href);
  if (location.hash !== '') history.replaceState(null, '', location.pathname);
  return parameters;
}

/** Reads the query of the page's own URL, and removes it from the address bar and the history. */
export function takeQuery() {
  const query = new URLSearchParams(location.search);
  if (location.search !== '') history.replaceState(null, '', location.pathname + location.hash);
  return query;
}
