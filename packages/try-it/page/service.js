// @ts-check
/** Sends requests to the service. */
import { asRequestError } from './request-error.js';

/**
 * @typedef {object} ServiceRequest
 * @property {'GET' | 'POST' | 'DELETE'} method
 * @property {string} path
 * @property {Record<string, unknown>} [body]
 * @property {string} [token] the bearer token
 */

/**
 * @typedef {object} Request
 * @property {string} method
 * @property {string} url
 * @property {Record<string, string>} headers
 * @property {object | undefined} [body]
 * @property {boolean} [usesCookies] whether the response depends on the identity cookies, or sets them
 * @property {Request} [copied] the request to copy in place of this one
 */

/**
 * @typedef {object} Exchange
 * @property {Request} request
 * @property {{ status: number, headers: Record<string, string>, body: Record<string, any> }} [response]
 *   missing if the service did not respond
 */

/** The response headers that the page shows. */
const SHOWN_HEADERS = ['content-type', 'cache-control', 'retry-after', 'www-authenticate', 'x-request-id'];

/**
 * @param {ServiceRequest} request
 * @returns {Promise<Exchange>}
 */
export async function send({ method, path, body, token }) {
  const headers = {
    ...(body && { 'Content-Type': 'application/json' }),
    ...(token && { Authorization: `Bearer ${token}` }),
  };
  const usesCookies = method === 'POST' && token === undefined && path.startsWith('/v2/customer/');
  const request = { method, url: path, headers, body, usesCookies };
  try {
    const options = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(path, { ...options, credentials: 'same-origin', redirect: 'error' });
    const { status } = response;
    return { request, response: { status, headers: shownHeaders(response.headers), body: await response.json() } };
  } catch {
    return { request };
  }
}

/** @param {Iterable<[string, string]>} headers */
const shownHeaders = (headers) => Object.fromEntries([...headers].filter(([name]) => SHOWN_HEADERS.includes(name)));

/** @param {Exchange} exchange */
export const succeeded = ({ response }) => response?.status === 200;

/** @param {number} seconds */
const tooManyRequests = (seconds) =>
  `There were too many requests. Try again in ${seconds} second${seconds === 1 ? '' : 's'}.`;

/**
 * What went wrong in the page, as a sentence.
 * @param {unknown} error
 */
export const sentenceOf = (error) =>
  asRequestError(error).error === 'cookies_blocked'
    ? 'Your browser blocks the cookies of this chat. Allow them to use the chat.'
    : /** @type {Error} */ (error).message;

/**
 * What went wrong, as a sentence.
 * @param {Exchange} exchange
 */
export function problemOf({ response }) {
  if (!response) return 'The service did not respond. Is it still running?';
  const { status, headers, body } = response;
  if (status === 429) return tooManyRequests(Number(headers['retry-after']));
  const reason = body.error_hint ?? body.error_description ?? '';
  return `The service responded with ${status} ${body.error ?? ''}: ${reason}`;
}
