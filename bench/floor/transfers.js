// @ts-check
/** Transfer tokens: creation, exchange, and the exchange with `remember: "browser"`. */
import { randomBytes } from 'node:crypto';
import { execute, executeTransaction, NEW_BROWSER, WRITE_CUSTOMER } from './database.js';
import { cookies, respond } from './responses.js';
import { day, idleEnd, later, newSecret, sha256, tokenResponse, uuidv7, verified } from './tokens.js';

/** Inserts nothing if the bearer has ended, or if the customer has reached a bound. */
const NEW_CODE = `INSERT INTO session
  (id, kind, customer_id, parent_id, parent_epoch, depth, epoch, client_id, code_hash, created_at, expires_at)
  SELECT ?, 'code', customer_id, id, epoch, depth + 1, 0, ?, ?, ?, ? FROM session parent
  WHERE id = ? AND epoch = ? AND expires_at > ? AND depth < 8
    AND NOT EXISTS (SELECT 1 FROM ended WHERE kind = 'client' AND value = ? AND issued_before >= ?)
    AND (SELECT COUNT(*) < 200 AND COALESCE(SUM(kind = 'code'), 0) < 60 FROM session made
      WHERE made.customer_id = parent.customer_id AND made.expires_at > ?
        AND made.kind IN ('code', 'moved', 'transferred', 'refresh', 'proof'))`;
const CODE = `
  SELECT session.id, session.kind, session.customer_id, session.client_id, session.code_challenge, customer.generation,
    customer.organization_id
  FROM session JOIN customer ON customer.entity_id = session.customer_id
  LEFT JOIN ended ON ended.kind = 'client' AND ended.value = session.client_id
    AND ended.issued_before >= session.created_at
  WHERE session.code_hash = ? AND session.agent_session_id IS NULL AND ended.kind IS NULL`;
/** Changes nothing if the code was redeemed, or has ended. */
const REDEEM = `
  UPDATE session SET kind = 'moved', redeemed_at = CURRENT_TIMESTAMP(3), redeemed_network = ?, expires_at = ?
  WHERE id = ? AND kind = 'code' AND expires_at > ?`;
const REDEEM_FOR_BROWSER = `
  UPDATE session SET kind = 'transferred', browser_id = ?, organization_id = ?, group_id = '', seen_day = ?,
    redeemed_at = CURRENT_TIMESTAMP(3), redeemed_network = ?, expires_at = ?
  WHERE id = ? AND kind = 'code' AND expires_at > ?`;
const COUNT_DEVICES = `SELECT COUNT(*) AS devices FROM session
  WHERE customer_id = ? AND kind IN ('transferred', 'refresh') AND expires_at > ?`;
const MAX_DEVICES_COUNT = 20;

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** @param {Request} request @param {Response} response @param {string} text */
export function transfer(request, response, text) {
  const body = JSON.parse(text);
  const { sub, gen, sid, ep, client_id, iat } = verified(request.headers.authorization?.slice(7) ?? '');
  const code = `dev:${randomBytes(32).toString('base64url')}`;
  const now = new Date();
  const row = [uuidv7(), body.client_id, sha256(code), now, later(3_600)];
  const steps = /** @type {import('./database.js').Step[]} */ ([
    [WRITE_CUSTOMER, [day(), sub, gen]],
    [NEW_CODE, [...row, sid, ep, now, client_id, new Date(iat * 1000), now]],
  ]);
  executeTransaction(response, steps, () => respond(response, { identity_transfer_token: code, expires_in: 3_600 }));
}

/** @param {Response} response @param {any} body */
export function exchange(response, body) {
  execute(response, CODE, [sha256(body.code)], ([code]) => {
    if (code.client_id !== body.client_id || code.kind !== 'code') throw new Error('invalid code');
    if (code.code_challenge !== null && code.code_challenge !== sha256(body.code_verifier ?? '', 'base64url'))
      throw new Error('wrong code_verifier');
    if (body.remember === 'browser') remember(response, code);
    else redeem(response, code);
  });
}

/**
 * Adds a browser that leads to the customer. If the redemption changes no row, the browser is not added.
 *
 * @param {Response} response @param {any} code
 */
function remember(response, code) {
  const { id, customer_id, organization_id, generation } = code;
  const browserId = uuidv7();
  const { secret, secretHash } = newSecret(browserId, customer_id);
  const now = new Date();
  const device = [browserId, organization_id, day(), networkOf(response, code), idleEnd()];
  const steps = /** @type {import('./database.js').Step[]} */ ([
    [WRITE_CUSTOMER, [day(), customer_id, generation]],
    [COUNT_DEVICES, [customer_id, now], ([{ devices }]) => devices < MAX_DEVICES_COUNT],
    [NEW_BROWSER, [browserId, secretHash]],
    [REDEEM_FOR_BROWSER, [...device, id, now]],
  ]);
  executeTransaction(response, steps, () => respondToken(response, code, cookies(customer_id, secret)));
}

/** @param {Response} response @param {any} code */
function redeem(response, code) {
  const redemption = [networkOf(response, code), later(28_800), code.id, new Date()];
  execute(response, REDEEM, redemption, ({ affectedRows }) => {
    if (affectedRows !== 1) throw new Error('another request was faster, or the code has ended');
    respondToken(response, code);
  });
}

/** @param {Response} response @param {any} code */
const networkOf = (response, { id }) => sha256(`${id} ${response.req.socket.remoteAddress}`);

/** @param {Response} response @param {any} code @param {string[]} [setCookie] */
function respondToken(response, { id, client_id, customer_id, organization_id, generation }, setCookie) {
  const of = { client_id, organization_id, grant_type: 'identity_token' };
  const session = { gen: Number(generation), sid: id, ep: 0 };
  respond(response, tokenResponse(customer_id, of, { client_id }, session), setCookie);
}
