// @ts-check
/** Transfer tokens: creation, exchange, and the exchange with `remember: "browser"`. */
import { randomBytes, randomUUID } from 'node:crypto';
import { endOf, execute, executeTransaction, HAS_ENDED, NEW_BROWSER } from './database.js';
import { cookies, respond } from './responses.js';
import { day, later, newSecret, sha256, tokenResponse, uuidv7, verified } from './tokens.js';

/** Inserts nothing if the bearer has ended. */
const NEW_CODE = `INSERT INTO one_time_code
  (hash, kind, client_id, subject, organization_id, code_challenge, made_with, expires_at)
  SELECT ?, 'transfer', ?, ?, ?, ?, ?, ? FROM DUAL WHERE NOT ${HAS_ENDED}`;
const CODE = `
  SELECT client_id, subject, organization_id, code_challenge, made_with, consumed_at
  FROM one_time_code WHERE hash = ?`;
/** Changes nothing if the bearer that created the code has ended. */
const REDEEM = `
  UPDATE one_time_code SET consumed_at = COALESCE(consumed_at, CURRENT_TIMESTAMP(3)), consumed_by = ?, consumed_network = ?
  WHERE hash = ? AND expires_at > ? AND (consumed_at IS NULL OR consumed_by = ?) AND NOT ${HAS_ENDED}`;

const NEW_LINK = `INSERT INTO browser_customer
  (browser_id, entity_id, organization_id, group_id, origin, began_in, generation, seen_day, root, lineage)
  SELECT ?, entity_id, organization_id, group_id, 'transfer', ?, ?, ?, ?, ? FROM customer WHERE entity_id = ?`;
const NEW_ANCESTORS = 'INSERT INTO link_ancestor (browser_id, entity_id, ancestor_id) VALUES (?, ?, ?), (?, ?, ?)';

/** @typedef {import('node:http').IncomingMessage} Request @typedef {import('node:http').ServerResponse} Response */

/** @param {Request} request @param {Response} response @param {string} text */
export function transfer(request, response, text) {
  const body = JSON.parse(text);
  const claims = verified(request.headers.authorization?.slice(7) ?? '');
  const code = `dev:${randomBytes(32).toString('base64url')}`;
  const { jti, sub, organization_id } = claims;
  const lineage = { gen: claims.gen, ancestors: [jti], transfers: 1 };
  const madeWith = JSON.stringify({ jti, lineage, issued_at: Date.now() / 1000 });
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
    const origin = JSON.parse(code.made_with);
    if (body.remember === 'browser') remember(response, hash, code, origin);
    else redeem(response, hash, code, origin);
  });
}

/**
 * Adds a browser that leads to the customer. If the redemption changes no row, the browser is not added.
 *
 * @param {Response} response @param {string} hash @param {any} code @param {any} origin
 */
function remember(response, hash, code, origin) {
  const attempt = randomUUID();
  const browserId = uuidv7();
  const { secret, secretHash } = newSecret(browserId);
  const { subject } = code;
  const { gen, ...lineage } = origin.lineage;
  const [root] = lineage.ancestors;
  const ofLink = JSON.stringify({ ...lineage, ancestors: [...lineage.ancestors, attempt] });
  const statements = /** @type {[string, any[]][]} */ ([
    [REDEEM, redemption(response, hash, attempt, code, origin)],
    [NEW_BROWSER, [browserId, secretHash]],
    [NEW_LINK, [browserId, browserId, gen, day(), root, ofLink, subject]],
    [NEW_ANCESTORS, [browserId, subject, root, browserId, subject, attempt]],
  ]);
  executeTransaction(response, statements, () => respondToken(response, code, origin, cookies(subject, secret)));
}

/** @param {Response} response @param {string} hash @param {any} code @param {any} origin */
function redeem(response, hash, code, origin) {
  execute(response, REDEEM, redemption(response, hash, randomUUID(), code, origin), ({ affectedRows }) => {
    if (affectedRows !== 1) throw new Error('another attempt was faster, or the bearer has ended');
    respondToken(response, code, origin);
  });
}

/**
 * The parameters of REDEEM.
 *
 * @param {Response} response @param {string} hash @param {string} attempt @param {any} code @param {any} origin
 */
function redemption(response, hash, attempt, { client_id, subject: sub }, { jti, lineage, issued_at: iat }) {
  const network = sha256(`${hash} ${response.req.socket.remoteAddress}`);
  const end = endOf({ jti, client_id, iat, sub, gen: lineage.gen });
  return [attempt, network, hash, new Date(), attempt, ...end];
}

/** @param {Response} response @param {any} code @param {any} origin @param {string[]} [setCookie] */
function respondToken(response, { client_id, subject, organization_id }, { lineage }, setCookie) {
  const of = { client_id, organization_id, grant_type: 'identity_token' };
  respond(response, tokenResponse(subject, of, { client_id }, lineage), setCookie);
}
