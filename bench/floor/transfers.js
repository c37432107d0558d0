// @ts-check
/** Transfer tokens: creation, exchange, and the exchange with `remember: "browser"`. */
import { randomBytes, randomUUID } from 'node:crypto';
import { endOf, execute, executeAll, HAS_ENDED } from './database.js';
import { cookies, respond } from './responses.js';
import { later, sha256, tokenResponse, uuidv7, verified } from './tokens.js';

/** Inserts nothing if the bearer has ended. */
const NEW_CODE = `INSERT INTO one_time_code
  (hash, kind, client_id, subject, organization_id, code_challenge, made_with, expires_at)
  SELECT ?, 'transfer', ?, ?, ?, ?, ?, ? FROM DUAL WHERE NOT ${HAS_ENDED}`;
const CODE = `
  SELECT client_id, subject, organization_id, code_challenge, made_with, consumed_at,
    (SELECT group_id FROM customer_identity WHERE entity_id = subject) AS group_id,
    (SELECT link_generation FROM customer_identity WHERE entity_id = subject) AS link_generation
  FROM one_time_code WHERE hash = ?`;
/** Changes nothing if the bearer that created the code has ended. */
const REDEEM = `
  UPDATE one_time_code SET consumed_at = COALESCE(consumed_at, CURRENT_TIMESTAMP(3)), consumed_by = ?, consumed_network = ?
  WHERE hash = ? AND expires_at > ? AND (consumed_at IS NULL OR consumed_by = ?) AND NOT ${HAS_ENDED}`;

const NEW_BROWSER = `INSERT INTO customer_identity
  (entity_id, browser_id, secret_hash, last_seen_day, created_at) VALUES (?, ?, ?, ?, ?)`;
const NEW_LINK = `INSERT INTO browser_link
  (browser_id, organization_id, group_id, entity_id, generation, scope_seen_day, redemption, lineage)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;
const NEW_CREDENTIAL = 'INSERT INTO link_credential (hash, browser_id) VALUES (?, ?)';
const NEW_ANCESTORS = 'INSERT INTO link_ancestor (redemption, ancestor_id) VALUES (?, ?), (?, ?)';

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** @param {Request} request @param {Response} response @param {string} text */
export function transfer(request, response, text) {
  const body = JSON.parse(text);
  const claims = verified(request.headers.authorization?.slice(7) ?? '');
  const code = `dev:${randomBytes(32).toString('base64url')}`;
  const { jti, sub, client_id, iat, organization_id } = claims;
  const lineage = { gen: claims.gen, ancestors: [jti], transfers: 1 };
  const madeWith = JSON.stringify({ jti, sub, client_id, iat, lineage });
  const row = [sha256(code), body.client_id, sub, organization_id, null, madeWith, later(3_600)];
  execute(response, NEW_CODE, [...row, ...endOf(claims)], ({ affectedRows }) => {
    if (affectedRows !== 1) throw new Error('ended');
    respond(response, { identity_transfer_token: code, expires_in: 3_600 });
  });
}

/** @param {Response} response @param {any} body */
export function exchange(response, body) {
  const hash = sha256(body.code);
  execute(response, CODE, [hash], ([code]) => {
    if (code.client_id !== body.client_id || code.consumed_at !== null) throw new Error('invalid code');
    if (code.code_challenge !== null && code.code_challenge !== sha256(body.code_verifier ?? '', 'base64url'))
      throw new Error('wrong code_verifier');
    const { lineage, ...bearer } = JSON.parse(code.made_with);
    const end = endOf({ ...bearer, ...lineage, sub: code.subject });
    if (body.remember === 'browser') remember(response, hash, code, lineage, end);
    else redeem(response, hash, randomUUID(), code, lineage, end);
  });
}

/**
 * Adds a browser that leads to the customer.
 *
 * @param {Response} response @param {string} hash @param {any} code @param {any} lineage @param {any[]} end
 */
function remember(response, hash, code, lineage, end) {
  const attempt = randomUUID();
  const browserId = uuidv7();
  const secret = randomBytes(32).toString('hex');
  const day = Math.floor(Date.now() / 86_400_000);
  const { subject, organization_id, group_id, link_generation } = code;
  const ofLink = JSON.stringify({ ...lineage, gen: undefined, ancestors: [...lineage.ancestors, attempt] });
  const link = [browserId, organization_id, group_id, subject, link_generation ?? 0, day, attempt, ofLink];
  executeAll(
    response,
    [
      [NEW_BROWSER, [browserId, browserId, sha256(secret), day, new Date()]],
      [NEW_LINK, link],
      [NEW_CREDENTIAL, [sha256(`${subject}:${secret}`), browserId]],
      [NEW_ANCESTORS, [attempt, lineage.ancestors[0], attempt, attempt]],
    ],
    () => redeem(response, hash, attempt, code, lineage, end, cookies(subject, secret)),
  );
}

/**
 * @param {Response} response @param {string} hash @param {string} attempt @param {any} code @param {object} lineage
 * @param {any[]} end the parameters of HAS_ENDED
 * @param {string[]} [setCookie]
 */
function redeem(response, hash, attempt, code, lineage, end, setCookie) {
  const network = sha256(`${hash} ${response.req.socket.remoteAddress}`);
  execute(response, REDEEM, [attempt, network, hash, new Date(), attempt, ...end], ({ affectedRows }) => {
    if (affectedRows !== 1) throw new Error('another attempt was faster, or the bearer has ended');
    const { client_id, subject, organization_id } = code;
    const of = { client_id, organization_id, grant_type: 'identity_token' };
    respond(response, tokenResponse(subject, of, { client_id }, lineage), setCookie);
  });
}
