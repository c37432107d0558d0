import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { getRepositoryToken } from '@nestjs/typeorm';
import { DataSource, type EntityMetadata } from 'typeorm';
import { DatabaseStart } from './database-start.js';

const expiring = new WeakSet<object>();

/** Declares an entity whose rows the purge deletes after their `expires_at`. */
export const Expires = (): ClassDecorator => (entity) => void expiring.add(entity);

/** @throws Error that names an entity without an index on `expires_at`, by which the purge finds rows */
export function expiringTables({ entityMetadatas }: DataSource): string[] {
  const expiringEntities = entityMetadatas.filter(({ target }) => typeof target === 'function' && expiring.has(target));
  for (const metadata of expiringEntities) {
    if (metadata.indices.some(({ columns }) => columns[0]?.databaseName === 'expires_at')) continue;
    throw new Error(`${metadata.name}: @Expires() needs a column named "expires_at" with an @Index; add it`);
  }
  return expiringEntities.map(({ tableName }) => tableName).sort();
}

const SQLITE_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'";
const MYSQL_TABLES = 'SELECT table_name AS name FROM information_schema.tables WHERE table_schema = DATABASE()';

/** Stops the start if no migration has created the table of an entity. */
@Injectable()
export class MissingTables implements OnApplicationBootstrap {
  constructor(
    private readonly dataSource: DataSource,
    private readonly modules: ModuleRef,
    private readonly start: DatabaseStart,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const isFile = this.dataSource.options.type === 'better-sqlite3';
    const rows: { name: string }[] = await this.start.run(() =>
      this.dataSource.query(isFile ? SQLITE_TABLES : MYSQL_TABLES),
    );
    const tables = new Set(rows.map(({ name }) => name.toLowerCase()));
    const missing = this.dataSource.entityMetadatas.find(
      (entity) => !tables.has(entity.tableName.toLowerCase()) && this.isOfModule(entity),
    );
    if (!missing) return;
    throw new Error(
      `${missing.name}: the database has no table "${missing.tableName}"; list the migration that creates it in migrations of the Extension, or in src/migrations/migrations.ts`,
    );
  }

  /** With `autoLoadEntities` TypeORM also knows the entities of all other applications of the process. */
  private isOfModule({ target }: EntityMetadata): boolean {
    try {
      return this.modules.get(getRepositoryToken(target as never), { strict: false }) !== undefined;
    } catch {
      return false;
    }
  }
}
