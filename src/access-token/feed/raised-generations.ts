import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../../platform/clock.js';
import { writeIn } from '../../platform/database/in-transaction.js';
import { type WriteStatement, writeStatement } from '../../platform/database/statement.js';
import { RecordedValues } from '../recorded-values.js';
import type { Audience } from '../token-lineage.js';

type Parameters = [issuedBefore: Date, expiresAt: Date, subject: string];

/** Two writes for one subject: its row for the feed gets the generation, and is created if there is none. */
const statementsFor = (audience: Audience, table: string, key: string) => {
  const generation = `(SELECT raised.generation FROM ${table} AS raised WHERE raised.${key} = revocation.value)`;
  return [
    // `published_until` comes first, because MySQL assigns from left to right
    writeStatement<Parameters>(`UPDATE revocation
      SET published_until = CASE WHEN generation < ${generation} THEN NULL ELSE published_until END,
        generation = COALESCE(${generation}, generation), issued_before = ?, expires_at = ?
      WHERE kind = 'generation' AND value = ?`),
    writeStatement<Parameters>(
      ({
        insertIgnore,
      }) => `${insertIgnore} INTO revocation (kind, value, issued_before, expires_at, generation, audience)
      SELECT 'generation', ${key}, ?, ?, generation, '${audience}' FROM ${table} WHERE ${key} = ? AND generation > 0`,
    ),
  ];
};

const STATEMENTS: Record<Audience, WriteStatement<Parameters>[]> = {
  'customer-api': statementsFor('customer-api', 'customer', 'entity_id'),
  'agent-api': statementsFor('agent-api', 'agent', 'id'),
};

/** SELECTs the row of a customer, for an export. The parameter is its id. */
export const FIND_RAISED_GENERATION = `SELECT kind, value, issued_before, expires_at, generation, audience
  FROM revocation WHERE kind = 'generation' AND value = ? ORDER BY value`;

/** The transaction that raises a generation also writes the row for the feed, so that the feed misses none. */
@Injectable()
export class RaisedGenerations {
  constructor(
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /** @param manager of the transaction that has raised the generations of these customers or agents */
  async record(audience: Audience, subjects: string[], manager: EntityManager): Promise<void> {
    const { token } = await this.recorded.retentionSeconds(manager);
    const now = this.clock.now();
    const expiresAt = new Date(now + token * 1000);
    for (const subject of subjects)
      for (const statement of STATEMENTS[audience])
        await writeIn(manager, statement, [new Date(now), expiresAt, subject]);
  }
}
