// @ts-check
/** Refresh tokens of customers. */
import { createHmac, randomBytes } from 'node:crypto';
import { execute } from './database.js';
import { respond } from './responses.js';
import { day, later, sha256, tokenResponse } from './tokens.js';

const FIND_SESSION = `
  SELECT session.id, session.customer_id, session.client_id, session.epoch, session.current_hash, session.expires_at,
    customer.organization_id, customer.generation
  FROM session JOIN customer ON customer.entity_id = session.customer_id
  LEFT JOIN agent_session ON agent_session.id = session.agent_session_id AND agent_session.epoch = session.agent_epoch
  LEFT JOIN ended ON ended.kind = 'client' AND ended.value = session.client_id
    AND ended.issued_before >= session.redeemed_at
  WHERE session.refresh_id_hash = ? AND session.agent_session_id IS NULL AND ended.kind IS NULL`;
/** Changes nothing if the session has ended, or a parallel request was faster. */
const ROTATE = `
  UPDATE session
  SET current_hash = ?, previous_hash = ?, successor_nonce = ?, used_at = ?, seen_day = ?, expires_at = ?
  WHERE id = ? AND current_hash = ?`;

/** @param {import('node:http').ServerResponse} response @param {any} body */
export function refresh(response, body) {
  const [family, secret] = body.refresh_token.slice(4).split('.');
  const used = sha256(secret);
  execute(response, FIND_SESSION, [sha256(family)], ([session]) => {
    const { id, client_id, customer_id, current_hash, organization_id } = session;
    if (client_id !== body.client_id || current_hash !== used || session.expires_at <= new Date())
      throw new Error('invalid refresh token');
    const nonce = randomBytes(32).toString('base64url');
    const next = createHmac('sha256', secret).update(nonce).digest('base64url');
    const values = [sha256(next), used, nonce, new Date(), day(), later(30 * 86_400)];
    execute(response, ROTATE, [...values, id, used], ({ affectedRows }) => {
      if (affectedRows !== 1) throw new Error('another request was faster, or the session has ended');
      const of = { client_id, organization_id, grant_type: 'refresh_token' };
      const claims = { gen: Number(session.generation), sid: id, ep: session.epoch };
      respond(response, tokenResponse(customer_id, of, { client_id, refresh_token: `dev:${family}.${next}` }, claims));
    });
  });
}
