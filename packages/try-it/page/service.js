// @ts-check
/** Sends requests to the service. */

/**
 * @typedef {object} ServiceRequest
 * @property {'GET' | 'POST' | 'DELETE'} method
 * @property {string} path
 * @property {Record<string, unknown>} [body]
 * @property {string} [token] the bearer token
 */

/**
 * @typedef {object} Exchange
 * @property {{ method: string, url: string, headers: Record<string, string>, body?: object | undefined }} request
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
  const request = { method, url: path, headers, body };
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
