// @ts-check
/** Refresh tokens of customers. */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { endOf, execute, HAS_ENDED } from './database.js';
import { respond } from './responses.js';
import { later, sha256, tokenResponse } from './tokens.js';

const FIND_FAMILY = 'SELECT * FROM refresh_family WHERE family_hash = ?';
/** Changes nothing if the family, its ancestor or its customer has ended. */
const ROTATE = `
  UPDATE refresh_family
  SET current_hash = ?, previous_hash = ?, successor_nonce = ?, rotated_network = ?,
    rotated_at = CURRENT_TIMESTAMP(3), expires_at = ?
  WHERE id = ? AND current_hash = ? AND ended_at IS NULL AND expires_at > ? AND NOT ${HAS_ENDED}`;

/** @param {import('node:http').ServerResponse} response @param {any} body */
export function refresh(response, body) {
  const [familyKey, secret] = body.refresh_token.slice(4).split('.');
  const used = sha256(secret);
  execute(response, FIND_FAMILY, [sha256(familyKey)], ([family]) => {
    const { id, client_id, customer_id: sub, current_hash, begun_at, generation: gen, organization_id } = family;
    if (client_id !== body.client_id || current_hash !== used || family.expires_at <= new Date())
      throw new Error('invalid refresh token');
    const lineage = { ...JSON.parse(family.lineage), gen };
    const claims = { jti: lineage.ancestors[0], family: id, sub, client_id, iat: begun_at.getTime() / 1000, gen };
    const nonce = randomBytes(32).toString('base64url');
    const next = createHmac('sha256', secret).update(nonce).digest('base64url');
    const network = sha256(`${id} ${response.req.socket.remoteAddress}`);
    const values = [sha256(next), used, nonce, network, later(30 * 86_400)];
    execute(response, ROTATE, [...values, id, used, new Date(), ...endOf(claims)], ({ affectedRows }) => {
      if (affectedRows !== 1) throw new Error('another attempt was faster, or the family has ended');
      const of = { client_id, organization_id, grant_type: 'refresh_token', jti: `${id}.${randomUUID()}` };
      const refresh_token = `dev:${familyKey}.${next}`;
      respond(response, tokenResponse(sub, of, { client_id, refresh_token }, lineage));
    });
  });
}
