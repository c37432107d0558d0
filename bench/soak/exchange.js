// @ts-check
import { request } from 'node:http';

/** Longer than the service waits for its database, so that a slow response is not counted as a lost one. */
const TIMEOUT_MS = 15_000;

/**
 * @typedef {object} Message a request
 * @property {string} method
 * @property {string} path
 * @property {Record<string, string>} [headers]
 * @property {string | object} [body] an object becomes JSON
 *
 * @typedef {object} Reply a response
 * @property {number} status 0 if there is no response
 * @property {string} [lost] why there is no response, for example ECONNRESET
 * @property {string} text
 * @property {any} json `undefined` if the body is no JSON
 * @property {string} cookies name and value of each cookie, as a browser returns them
 * @property {string} location
 * @property {string} requestId
 */

/**
 * Sends a request to a process on one of its open connections, and waits for the response.
 *
 * @param {Pick<import('./pods.js').Pod, 'server' | 'agent'>} pod @param {'public' | 'management'} surface
 * @param {Message} message
 * @returns {Promise<Reply>}
 */
export function exchange({ server, agent }, surface, { method, path, headers = {}, body }) {
  const port = surface === 'public' ? server.port : server.managementPort;
  const content = typeof body === 'object' ? JSON.stringify(body) : body;
  const length = content === undefined ? {} : { 'content-length': Buffer.byteLength(content) };
  return new Promise((resolve) => {
    const lose = (/** @type {NodeJS.ErrnoException} */ error) => resolve(lost(error.code ?? error.message));
    const options = { host: '127.0.0.1', port, method, path, agent, headers: { ...headers, ...length } };
    const sent = request(options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.once('error', lose);
      response.once('end', () => {
        clearTimeout(timer);
        const { statusCode: status = 0, headers: received } = response;
        const cookies = (received['set-cookie'] ?? []).map((line) => line.split(';', 1)[0]).join('; ');
        const requestId = String(received['x-request-id'] ?? '');
        resolve({ status, text, json: parsed(text), cookies, location: received.location ?? '', requestId });
      });
    });
    const timer = setTimeout(() => {
      resolve(lost('timeout'));
      sent.destroy();
    }, TIMEOUT_MS);
    sent.once('error', (error) => {
      clearTimeout(timer);
      lose(error);
    });
    sent.end(content);
  });
}

/** @param {string} reason @returns {Reply} */
function lost(reason) {
  return { status: 0, lost: reason, text: '', json: undefined, cookies: '', location: '', requestId: '' };
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
