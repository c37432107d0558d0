// @ts-check
/** The requests of a benchmark: their bytes, and the order of a round. */
import { CLIENT } from './site.js';

/** Requests whose token works once: how many a round has, and how long it may last. */
export const SINGLE_USE = { count: 30_000, seconds: 2 };
/** The first token of each round comes so many tokens later, when the service has forgotten those of the round before. */
const NEW_TOKENS_PER_ROUND_COUNT = 5_714;

/** @param {Record<string, string>} parameters @param {string} [header] */
export function token(parameters, header) {
  return json('/v2/customer/token', { client_id: CLIENT, response_type: 'token', ...parameters }, header);
}

/**
 * A POST of JSON with the Content-Type of browsers.
 *
 * @param {string} path @param {object} parameters @param {string} [header]
 */
export function json(path, parameters, header) {
  return post(path, JSON.stringify(parameters), ['Content-Type: text/plain', header].filter(Boolean).join('\r\n'));
}

/** The bytes of a POST. @param {string} path @param {string} body @param {string} header */
export function post(path, body, header) {
  return `POST ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** @param {string} path @param {string} header */
export function get(path, header) {
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n`;
}

/**
 * Requests that succeed once. Each round gets the next ones.
 *
 * @param {(n: number) => string} request the n-th request, from 1
 */
export function newRequests(request) {
  let sent = 0;
  return () => Array.from({ length: SINGLE_USE.count }, () => request(++sent));
}

/** The same requests in each round, from another one on. @param {string[]} requests */
export function inNewOrder(requests) {
  let rounds = 0;
  return () => {
    const first = (rounds++ * NEW_TOKENS_PER_ROUND_COUNT) % requests.length;
    return [...requests.slice(first), ...requests.slice(0, first)];
  };
}

/** The next few of the same requests in each round. @param {string[]} requests @param {number} count */
export function inPortions(requests, count) {
  let rounds = 0;
  return () => {
    const first = (rounds++ * count) % requests.length;
    return requests.slice(first, first + count);
  };
}
