import { DataSource, type QueryResult, type QueryRunner, type ReplicationMode } from 'typeorm';

/**
 * As soon as there is a `Database`, each statement of a manager, a repository or a query builder of this data source
 * has the limits and retries of `Database`. Only `Database.transaction` begins a transaction.
 */
export class ServiceDataSource extends DataSource {
  sendStatement?: (sql: string, parameters: unknown[]) => Promise<QueryResult>;

  /** @throws Error if two entities have the same table, which TypeORM itself does not reject */
  protected override async buildMetadatas(): Promise<void> {
    await super.buildMetadatas();
    const owners = new Map<string, string>();
    for (const { tableName, name } of this.entityMetadatas) {
      const owner = owners.get(tableName);
      if (owner) throw new Error(`${owner} and ${name}: two entities have the table "${tableName}"; rename yours`);
      owners.set(tableName, name);
    }
  }

  override createQueryRunner(mode?: ReplicationMode): QueryRunner {
    const runner = super.createQueryRunner(mode);
    const { sendStatement } = this;
    if (!sendStatement) return runner;
    const query = async (sql: string, parameters: unknown[] = [], isStructured = false): Promise<unknown> => {
      const result = await sendStatement(sql, parameters);
      return isStructured ? result : result.raw;
    };
    const properties = {
      query: { value: query },
      connect: { value: rejectConnection },
      startTransaction: { value: rejectConnection },
    };
    const sending: QueryRunner = Object.create(runner, properties);
    this.createEntityManager(sending); // sets the manager of the runner
    return sending;
  }
}

async function rejectConnection(): Promise<never> {
  throw new Error('a manager outside of a transaction sends single statements; use Database.transaction');
}
