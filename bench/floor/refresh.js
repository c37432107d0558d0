// @ts-check
/** Refresh tokens of customers. */
import { randomBytes, randomUUID } from 'node:crypto';
import { endOf, execute, HAS_ENDED } from './database.js';
import { respond } from './responses.js';
import { later, sha256, tokenResponse } from './tokens.js';

const FIND_FAMILY = `
  SELECT family.*, customer.group_id FROM refresh_token token
  JOIN refresh_family family ON family.id = token.family_id
  JOIN customer_identity customer ON customer.entity_id = family.customer_id
  WHERE token.hash = ?`;
const NEW_TOKEN = 'INSERT INTO refresh_token (hash, family_id, expires_at) VALUES (?, ?, ?)';
const ROTATE = `
  UPDATE refresh_family
  SET current_hash = ?, previous_hash = ?, rotated_network = ?, rotated_at = CURRENT_TIMESTAMP(3), expires_at = ?
  WHERE id = ? AND current_hash IN (?, ?) AND ended_at IS NULL AND expires_at > ? AND NOT ${HAS_ENDED}`;

/** @param {import('node:http').ServerResponse} response @param {any} body */
export function refresh(response, body) {
  const used = sha256(body.refresh_token);
  execute(response, FIND_FAMILY, [used], ([family]) => {
    const { id, client_id, customer_id: sub, current_hash, begun_at, generation, organization_id } = family;
    if (client_id !== body.client_id || current_hash !== used || family.expires_at <= new Date())
      throw new Error('invalid refresh token');
    const lineage = { ...JSON.parse(family.lineage), gen: generation ?? 0 };
    const claims = { jti: id, sub, client_id, iat: begun_at.getTime() / 1000, gen: lineage.gen };
    const token = `dev:${randomBytes(32).toString('base64url')}`;
    const next = sha256(token);
    const network = sha256(`${id} ${response.req.socket.remoteAddress}`);
    const expiry = later(30 * 86_400);
    execute(response, NEW_TOKEN, [next, id, expiry], () => {
      const rotation = [next, used, network, expiry, id, used, next, new Date(), ...endOf(claims)];
      execute(response, ROTATE, rotation, ({ affectedRows }) => {
        if (affectedRows !== 1) throw new Error('another attempt was faster, or the family has ended');
        const of = { client_id, organization_id, grant_type: 'refresh_token', jti: `${id}.${randomUUID()}` };
        respond(response, tokenResponse(sub, of, { client_id, refresh_token: token }, lineage));
      });
    });
  });
}
