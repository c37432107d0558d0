// @ts-check

import { DEMO } from './demo.js';
import { copyButton, element, shellQuoted } from './dom.js';

/** @typedef {import('./service.js').Exchange} Exchange */

/** A longer word is a token or an id. The page shows its beginning and its end. */
const LONG_WORD = /[\w.:%~-]{60,}/g;
const SHOWN_START_COUNT = 28;
const SHOWN_END_COUNT = 8;

/** @param {string} text */
const shortened = (text) =>
  text.replace(LONG_WORD, (word) => `${word.slice(0, SHOWN_START_COUNT)}…${word.slice(-SHOWN_END_COUNT)}`);

/**
 * Shows requests and responses next to a step, in place of earlier ones.
 * @param {HTMLElement} wire
 * @param {Exchange[]} exchanges
 */
export function showExchanges(wire, ...exchanges) {
  wire.replaceChildren(...exchanges.map(exchangeView));
}

/** @param {Exchange} exchange */
function exchangeView({ request, response }) {
  const { method, url, headers, body } = request;
  const isError = !response || response.status >= 400;
  return element(
    'div',
    { class: 'exchange' },
    element(
      'p',
      { class: 'part' },
      'Request',
      worksOnce(body)
        ? element('span', { class: 'fine' }, 'works once')
        : copyButton('Copy as curl', () => curlOf(request)),
    ),
    messageView(`${method} ${url}`, headers, body),
    element('p', { class: `part ${isError ? 'error' : 'ok'}` }, 'Response'),
    response
      ? messageView(`HTTP/1.1 ${response.status}`, response.headers, response.body)
      : element('pre', {}, 'The service did not respond.'),
  );
}

/**
 * @param {string} firstLine
 * @param {Record<string, string>} headers
 * @param {object | undefined} body
 */
function messageView(firstLine, headers, body) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const text = body === undefined ? '' : `\n\n${JSON.stringify(body, null, 2)}`;
  return element('pre', {}, element('b', {}, firstLine), shortened(`\n${lines.join('\n')}${text}`).trimEnd());
}

/** Whether the request has a proof that a copy of the request would use again. @param {object | undefined} body */
const worksOnce = (body) => body !== undefined && ('code' in body || 'assertion' in body);

/**
 * The command has cookies of its own, and keeps them as this browser does. Its first token request is a new customer.
 * @param {Exchange['request']} request
 */
function curlOf({ copied, ...shown }) {
  const { method, url, headers, body, usesCookies } = copied ?? shown;
  const parts = [`curl -X ${method} '${DEMO.authUrl}${url}'`];
  if (usesCookies) parts.push('-b try.cookies -c try.cookies');
  if (method !== 'GET') parts.push(`-H ${shellQuoted(`Origin: ${DEMO.authUrl}`)}`);
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${shellQuoted(`${name}: ${value}`)}`);
  if (body !== undefined) parts.push(`-d ${shellQuoted(JSON.stringify(body))}`);
  return parts.join(' \\\n  ');
}
