import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import {
  type SelectStatement,
  selectStatement,
  type WriteStatement,
  writeStatement,
} from '../platform/database/statement.js';

/** The number of families that one statement deletes, with which many families of one customer are deleted. */
export const FAMILIES_PER_DELETE = 100;
/** The rows of one table that one statement deletes. A family has one token for each use of its refresh tokens. */
const ROWS_PER_DELETE = 1_000;

type DeleteOfFamilies = WriteStatement<string[]>;

/** The statements that delete families. The texts have one of two sizes, because each connection prepares each text. */
class DeletionStatements {
  readonly end: WriteStatement<[now: Date, ...families: string[]]>;
  /** Each is repeated until it deletes less than ROWS_PER_DELETE rows. The order is that of the index. */
  readonly deleteParts: DeleteOfFamilies[];
  readonly deleteFamilies: DeleteOfFamilies;

  constructor(readonly size: number) {
    const families = `IN (${Array(size).fill('?').join()})`;
    this.end = writeStatement(`UPDATE refresh_family SET ended_at = COALESCE(ended_at, ?) WHERE id ${families}`);
    this.deleteParts = [
      ['refresh_token', 'family_id, hash'] as const,
      ['refresh_family_ancestor', 'family_id, ancestor_id'] as const,
    ].map(([table, order]) =>
      writeStatement(({ deleteInOrder }) => deleteInOrder(table, `family_id ${families}`, order, ROWS_PER_DELETE)),
    );
    this.deleteFamilies = writeStatement(`DELETE FROM refresh_family WHERE id ${families}`);
  }

  /** The parameters. Fewer families than the size are filled up with the last one. */
  parameters(families: string[]): string[] {
    return [...families, ...Array<string>(this.size - families.length).fill(families.at(-1) as string)];
  }
}

const OF_ONE_FAMILY = new DeletionStatements(1);
const OF_MANY_FAMILIES = new DeletionStatements(FAMILIES_PER_DELETE);

type FindFamilies = SelectStatement<[now: Date], { id: string }>;

/** Deletes refresh families of customers, with their refresh tokens and ancestors. */
@Injectable()
export class FamilyDeletion {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** Deletes at most FAMILIES_PER_DELETE families. */
  async delete(...families: string[]): Promise<void> {
    for await (const _ of this.deleteParts(families));
  }

  /**
   * Ends the families first, so that they stay ended if the deletion stops half-way. Their own rows are deleted last,
   * so that the deletion can run again. The generator yields after each statement that reached its limit of rows.
   */
  private async *deleteParts(families: string[]): AsyncGenerator<void, void> {
    if (families.length === 0) return;
    const statements = families.length === 1 ? OF_ONE_FAMILY : OF_MANY_FAMILIES;
    const parameters = statements.parameters(families);
    await this.database.executeIdempotent(statements.end, [new Date(this.clock.now()), ...parameters]);
    for (const statement of statements.deleteParts)
      while ((await this.database.executeIdempotent(statement, parameters)) === ROWS_PER_DELETE) yield;
    await this.database.executeIdempotent(statements.deleteFamilies, parameters);
  }

  /**
   * Deletes expired families, and families of which an ancestor has a revocation that has expired. The caller deletes
   * these revocations afterwards, if all steps have run. Otherwise the families would be valid again (protocol §3.14).
   *
   * @param size the number of families that one statement reads
   * @param now the time with which the caller then deletes the expired revocations
   * @returns the number of families that each step deleted
   */
  async *deleteInSteps(size: number, now: Date): AsyncGenerator<number, void> {
    const findRevoked: FindFamilies = selectStatement(
      `SELECT DISTINCT ancestor.family_id AS id FROM revocation
        JOIN refresh_family_ancestor ancestor ON ancestor.ancestor_id = revocation.value
        WHERE revocation.kind IN ('jti', 'family') AND revocation.expires_at < ? LIMIT ${size}`,
    );
    const findExpired: FindFamilies = selectStatement(
      `SELECT id FROM refresh_family WHERE expires_at < ? AND customer_id IS NOT NULL
        ORDER BY expires_at LIMIT ${size}`,
    );
    yield* this.deleteFound(findRevoked, size, now);
    yield* this.deleteFound(findExpired, size, now);
  }

  private async *deleteFound(find: FindFamilies, size: number, now: Date): AsyncGenerator<number, void> {
    let found = size;
    while (found === size) {
      const rows = await this.database.select(find, [now]);
      for (const { id } of rows) {
        for await (const _ of this.deleteParts([id])) yield 0;
        yield 1;
      }
      found = rows.length;
    }
  }
}
