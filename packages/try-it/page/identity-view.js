// @ts-check
import { byId } from './dom.js';

/**
 * Shows in the head of the page which customer the browser has.
 * @param {{ entity_id: string, expires_in: number } | undefined} token
 */
export function showIdentity(token) {
  byId('identity-dot').classList.toggle('on', token !== undefined);
  byId('identity').textContent = token
    ? `This browser is customer ${token.entity_id}. Its token is valid until ${timeAfter(token.expires_in)}.`
    : 'This browser has no token.';
}

/** Shows after a reload which customer the browser had. @param {string | null} entityId */
export function showKnownCustomer(entityId) {
  if (entityId !== null)
    byId('identity').textContent = `This browser was customer ${entityId} before. Step 1 gets a new token for it.`;
}

/** @param {number} seconds */
const timeAfter = (seconds) =>
  new Date(Date.now() + seconds * 1_000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' });
