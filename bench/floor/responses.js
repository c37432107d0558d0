// @ts-check
/** The headers and cookies of the floor's responses. */
import { randomUUID } from 'node:crypto';

/** @typedef {import('node:http').ServerResponse} Response */

/** @param {Response} response @param {object} body @param {string[]} [setCookie] */
export function respond(response, body, setCookie) {
  const text = JSON.stringify(body);
  const { origin } = response.req.headers;
  response.writeHead(200, {
    ...(response.req.url !== '/oauth2/introspect' && { Vary: 'Origin' }),
    ...(origin && {
      'Access-Control-Allow-Origin': origin,
      'Access-Control-Allow-Credentials': 'true',
      'Access-Control-Expose-Headers': 'X-Request-Id, Retry-After',
    }),
    ...(setCookie && { 'Set-Cookie': setCookie }),
    'X-Content-Type-Options': 'nosniff',
    'X-Request-Id': randomUUID(),
    'Content-Length': Buffer.byteLength(text),
    'Content-Type': 'application/json; charset=utf-8',
    'Cache-Control': 'no-store',
  });
  response.end(text);
}

/** @param {string} entity_id @param {string} secret */
export function cookies(entity_id, secret) {
  const expires = new Date(Date.now() + 63_072_000_000).toUTCString();
  const attributes = `; Max-Age=63072000; Path=/v2/customer; Domain=localhost; Expires=${expires}; HttpOnly; Secure; SameSite=None`;
  return [`__svc_cid=${entity_id}${attributes}`, `__svc_cst=${secret}${attributes}`];
}
