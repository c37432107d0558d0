import type { Database } from '../platform/database/database.js';

/** A refresh family, found by any of its tokens. */
export interface FamilyRow {
  id: string;
  client_id: string;
  agent_id: string;
  organization_id: string;
  scope: string;
  current_hash: string;
  previous_hash: string | null;
  begun_at: Date | string;
  ended_at: Date | string | null;
  expires_at: Date | string;
  generation: number | null;
  rotated_network: string | null;
  /** Milliseconds since the last rotation, by the clock of the database. */
  rotated_for: number;
  /** When the token that was looked for was replaced by a retry. */
  replaced_at: Date | string | null;
}

const FAMILY = `family.id, family.client_id, family.agent_id, family.organization_id, family.scope, family.current_hash,
  family.previous_hash, family.begun_at, family.ended_at, family.expires_at, family.generation, family.rotated_network`;

/** Matches the state that was read, or the one that this very attempt reached: of parallel attempts one matches. */
const IF_UNCHANGED = 'WHERE id = ? AND current_hash IN (?, ?) AND ended_at IS NULL AND expires_at > ?';

/** The statements about refresh families and their tokens. */
export class RefreshStatements {
  readonly insertToken = 'INSERT INTO refresh_token (hash, family_id, expires_at) VALUES (?, ?, ?)';
  readonly insertFamily = `INSERT INTO refresh_family
    (id, client_id, agent_id, organization_id, scope, current_hash, previous_hash, begun_at, rotated_at, ended_at,
      expires_at, generation)
    VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, NULL, ?, ?)`;
  readonly select: string;
  readonly rotate: string;
  readonly retry = `UPDATE refresh_family SET current_hash = ?, expires_at = ? ${IF_UNCHANGED}`;
  readonly markReplaced: string;
  readonly end = 'UPDATE refresh_family SET ended_at = COALESCE(ended_at, ?) WHERE id = ?';

  constructor(database: Database) {
    this.select = `SELECT ${FAMILY}, ${database.millisecondsSince('family.rotated_at')} AS rotated_for, token.replaced_at
      FROM refresh_token token JOIN refresh_family family ON family.id = token.family_id WHERE token.hash = ?`;
    this.rotate = `UPDATE refresh_family
      SET current_hash = ?, previous_hash = ?, rotated_network = ?, rotated_at = ${database.now}, expires_at = ? ${IF_UNCHANGED}`;
    this.markReplaced = `UPDATE refresh_token SET replaced_at = COALESCE(replaced_at, ${database.now}) WHERE hash = ?`;
  }
}
