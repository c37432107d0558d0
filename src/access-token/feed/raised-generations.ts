import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../../platform/clock.js';
import { writeIn } from '../../platform/database/in-transaction.js';
import { writeStatement } from '../../platform/database/statement.js';
import { RecordedValues } from '../recorded-values.js';

const GENERATION_TABLES = {
  'customer-api': { table: 'customer', key: 'entity_id' },
  'agent-api': { table: 'agent', key: 'id' },
} as const;

type SubjectAudience = keyof typeof GENERATION_TABLES;
type Parameters = [issuedBefore: Date, expiresAt: Date, subject: string];

/** Writes the generation of a subject to its row for the feed, if there is one. */
const updateFor = (audience: SubjectAudience) => {
  const { table, key } = GENERATION_TABLES[audience];
  const generation = `(SELECT raised.generation FROM ${table} AS raised WHERE raised.${key} = revocation.value)`;
  return writeStatement<Parameters>(
    // `published_until` comes first, because MySQL assigns from left to right
    `UPDATE revocation SET published_until = CASE WHEN generation < ${generation} THEN NULL ELSE published_until END,
        generation = COALESCE(${generation}, generation), issued_before = ?, expires_at = ?
      WHERE kind = 'generation' AND value = ?`,
  );
};

/** Creates the row, if there was none. */
const insertFor = (audience: SubjectAudience) => {
  const { table, key } = GENERATION_TABLES[audience];
  return writeStatement<Parameters>(
    ({
      insertIgnore,
    }) => `${insertIgnore} INTO revocation (kind, value, issued_before, expires_at, generation, audience)
      SELECT 'generation', ${key}, ?, ?, generation, '${audience}' FROM ${table} WHERE ${key} = ? AND generation > 0`,
  );
};

/** SELECTs the row of a customer, for an export. The parameter is its id. */
export const FIND_RAISED_GENERATION = `SELECT kind, value, issued_before, expires_at, generation, audience
  FROM revocation WHERE kind = 'generation' AND value = ? ORDER BY value`;

const STATEMENTS = {
  'customer-api': [updateFor('customer-api'), insertFor('customer-api')],
  'agent-api': [updateFor('agent-api'), insertFor('agent-api')],
} as const;

/**
 * Repeats raised generations in the table `revocation`, for the feed. The row is written in the transaction that raises
 * the generation, so that the feed misses none, even if the process dies. A customer without a raised generation has no
 * row, so that creating a customer costs nothing.
 */
@Injectable()
export class RaisedGenerations {
  constructor(
    private readonly clock: Clock,
    private readonly recorded: RecordedValues,
  ) {}

  /** @param manager of the transaction that has raised the generation of the customer */
  async recordCustomer(entityId: string, manager: EntityManager): Promise<void> {
    await this.record('customer-api', [entityId], manager);
  }

  /** @param manager of the transaction that has raised the generations of these agents */
  async recordAgents(agentIds: string[], manager: EntityManager): Promise<void> {
    await this.record('agent-api', agentIds, manager);
  }

  private async record(audience: SubjectAudience, subjects: string[], manager: EntityManager): Promise<void> {
    const { token } = await this.recorded.retentionSeconds(manager);
    const now = this.clock.now();
    const expiresAt = new Date(now + token * 1000);
    for (const subject of subjects)
      for (const statement of STATEMENTS[audience])
        await writeIn(manager, statement, [new Date(now), expiresAt, subject]);
  }
}
