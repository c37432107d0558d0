// @ts-check
/** What agents do with customers: `external_id` and `end_sessions`. */
import { AGENT, AGENT_IS_VALID, agentOf, execute, executeTransaction } from './database.js';
import { respond } from './responses.js';
import { day, later, sha256, tokenResponse, verified } from './tokens.js';

const CUSTOMER_OF_USER = `
  SELECT customer.entity_id, customer.generation
  FROM customer_key JOIN customer ON customer.entity_id = customer_key.entity_id ${AGENT}
  WHERE customer_key.hash = ? AND customer.erased_at IS NULL AND ${AGENT_IS_VALID}`;
/** One statement decides whether the agent may end the sessions, and ends them. */
const END_SESSIONS = `
  UPDATE customer ${AGENT}
  SET customer.version = customer.version + 1, customer.seen_day = ?,
    customer.generation = GREATEST(customer.generation + 1, ?)
  WHERE customer.entity_id = ? AND customer.organization_id = ? AND customer.erased_at IS NULL AND ${AGENT_IS_VALID}`;
/** The entry of the customer's generation for verifiers. */
const RECORD_GENERATION = `
  INSERT INTO ended (kind, value, number, reason, issued_before, expires_at, audience)
    SELECT 'subject', entity_id, generation, 'customer_generation', '9999-12-31', ?, 'customer-api'
    FROM customer WHERE entity_id = ?
  ON DUPLICATE KEY UPDATE number = VALUES(number), published_until = NULL, expires_at = VALUES(expires_at)`;
const DELETE_SESSIONS = "DELETE FROM session WHERE customer_id = ? AND kind NOT IN ('own', 'sign_in')";

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** The claims of an agent that may act for its own customers. @param {Request} request */
export function agentCalling(request) {
  const claims = verified(request.headers.authorization?.slice(7) ?? '');
  if (!claims.scope.split(' ').includes('customers:own')) throw new Error('missing scope');
  return claims;
}

/** @param {Request} request @param {Response} response @param {any} body */
export function customerOfUser(request, response, body) {
  const claims = agentCalling(request);
  const { organization_id, sub, client_id, sid, ep } = claims;
  const key = sha256(JSON.stringify([organization_id, body.external_id]));
  execute(response, CUSTOMER_OF_USER, [...agentOf(claims), key], ([customer]) => {
    if (!customer) throw new Error('ended, or unknown');
    const session = { gen: Number(customer.generation), act: { sub, sid, ep, client_id } };
    const fields = { client_id: body.client_id, organization_id, created: false };
    respond(response, tokenResponse(customer.entity_id, { ...body, organization_id }, fields, session));
  });
}

/** @param {Request} request @param {Response} response @param {string} text */
export function endSessions(request, response, text) {
  const { customer_id } = JSON.parse(text);
  const claims = agentCalling(request);
  const steps = /** @type {import('./database.js').Step[]} */ ([
    [END_SESSIONS, [...agentOf(claims), day(), Date.now(), customer_id, claims.organization_id]],
    [RECORD_GENERATION, [later(86_520), customer_id]],
    [DELETE_SESSIONS, [customer_id], () => true],
  ]);
  executeTransaction(response, steps, () => respond(response, {}));
}
