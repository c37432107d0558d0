// @ts-check
/** What agents do with customers: `external_id` and `end_sessions`. */
import { execute, executeTransaction, REVOKED, revocationOf } from './database.js';
import { respond } from './responses.js';
import { later, sha256, tokenResponse, verified } from './tokens.js';

const AGENT_IS_CURRENT = `NOT ${REVOKED}
  AND EXISTS (SELECT 1 FROM agent WHERE id = ? AND COALESCE(generation, 0) <= ?)`;
const CUSTOMER_OF_USER = `
  SELECT known.entity_id, customer.generation
  FROM organization_user known JOIN customer ON customer.entity_id = known.entity_id
  WHERE known.organization_id = ? AND known.user_hash = ? AND customer.erased_at IS NULL AND ${AGENT_IS_CURRENT}`;
/** One statement decides whether the agent may end the sessions, and ends them. */
const END_SESSIONS = `
  UPDATE customer SET version = version + 1, generation = generation + 1
  WHERE entity_id = ? AND organization_id = ? AND erased_at IS NULL AND ${AGENT_IS_CURRENT}`;

/** The row of the customer's generation for the revocation feed, if there is one. */
const UPDATE_GENERATION = `
  UPDATE revocation
  SET generation = (SELECT customer.generation FROM customer WHERE entity_id = value), published_until = NULL,
    issued_before = ?, expires_at = ?
  WHERE kind = 'generation' AND value = ?`;
const RECORD_GENERATION = `
  INSERT IGNORE INTO revocation (kind, value, issued_before, expires_at, generation, audience)
    SELECT 'generation', entity_id, ?, ?, generation, 'customer-api' FROM customer WHERE entity_id = ?`;

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** The claims of an agent that may act for its own customers. @param {Request} request */
export function agentOf(request) {
  const claims = verified(request.headers.authorization?.slice(7) ?? '');
  if (!claims.scope.split(' ').includes('customers:own')) throw new Error('missing scope');
  return claims;
}

/** @param {Request} request @param {Response} response @param {any} body */
export function customerOfUser(request, response, body) {
  const claims = agentOf(request);
  const { organization_id, sub, client_id, gen, jti } = claims;
  const userHash = sha256(JSON.stringify([organization_id, body.external_id]));
  execute(response, CUSTOMER_OF_USER, [organization_id, userHash, ...revocationOf(claims), sub, gen], ([customer]) => {
    if (!customer) throw new Error('ended, or unknown');
    const lineage = { gen: customer.generation, ancestors: [jti], act: { sub, client_id, gen } };
    const fields = { client_id: body.client_id, organization_id, created: false };
    respond(response, tokenResponse(customer.entity_id, { ...body, organization_id }, fields, lineage));
  });
}

/** @param {Request} request @param {Response} response @param {string} text */
export function endSessions(request, response, text) {
  const { customer_id } = JSON.parse(text);
  const claims = agentOf(request);
  const parameters = [customer_id, claims.organization_id, ...revocationOf(claims), claims.sub, claims.gen];
  const statements = /** @type {[string, any[]][]} */ ([
    [END_SESSIONS, parameters],
    [UPDATE_GENERATION, [new Date(), later(28_800), customer_id]],
    [RECORD_GENERATION, [new Date(), later(28_800), customer_id]],
  ]);
  executeTransaction(response, statements, () => respond(response, {}));
}
