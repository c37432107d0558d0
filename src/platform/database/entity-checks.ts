import type { DataSource } from 'typeorm';

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
