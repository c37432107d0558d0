// @ts-check
import { element } from './dom.js';

/** @type {Record<string, string>} */
const MEANINGS = {
  iss: 'the service that issued the token',
  sub: 'the customer (entity_id), or the agent',
  aud: 'the API that the token is for',
  client_id: 'the application that asked for the token',
  organization_id: 'the organization',
  group_id: 'the group in the organization',
  scope: 'what the agent allows',
  gty: 'the grant that issued the token',
  act: 'the agent who acts for the customer',
  sid: 'the session of the token; ending the session ends all of its tokens',
  ep: 'the epoch of the session; ending its tokens raises it',
  gen: 'the generation; ending all sessions raises it',
  iat: 'issued at',
  exp: 'expires at',
  jti: 'the id of this token',
};
const TIMES = ['iat', 'exp', 'nbf'];

/**
 * The payload of `REGION:JWS`, without a verification. Only the API that gets a token must verify it.
 * @param {string} token
 * @returns {Record<string, unknown>}
 */
export function decode(token) {
  const [, payload = ''] = token.split('.');
  const bytes = Uint8Array.from(atob(payload.replaceAll('-', '+').replaceAll('_', '/')), (each) => each.charCodeAt(0));
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** @param {Record<string, unknown>} claims */
export function claimsView(claims) {
  const rows = Object.entries(claims).map(([name, value]) =>
    element(
      'div',
      {},
      element('dt', {}, name),
      element(
        'dd',
        {},
        element('span', { class: 'value' }, textOf(name, value)),
        element('span', { class: 'meaning' }, MEANINGS[name] ?? ''),
      ),
    ),
  );
  return element('dl', { class: 'claims' }, ...rows);
}

/** @param {string} name @param {unknown} value */
function textOf(name, value) {
  if (TIMES.includes(name)) return new Date(Number(value) * 1_000).toLocaleString();
  return typeof value === 'string' ? value : JSON.stringify(value);
}
