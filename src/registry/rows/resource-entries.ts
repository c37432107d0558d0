import type { Type } from '@nestjs/common';
import { EntityReader, type Select } from './entity-reader.js';

/** An entry that differs from the one in memory. `undefined` means that it was deleted. */
export interface Difference<Entity> {
  key: string;
  entry: Entity | undefined;
}

/** The entries of one resource in memory. */
export class ResourceEntries<Entity extends object> {
  private readonly entries = new Map<string, Entity>();
  private readonly reader: EntityReader<Entity>;

  constructor(
    entity: Type<Entity>,
    private readonly key: keyof Entity & string,
  ) {
    this.reader = new EntityReader(entity, key);
  }

  get size(): number {
    return this.entries.size;
  }

  get(key: string): Entity | undefined {
    return this.entries.get(key);
  }

  /**
   * The differences between the database and the entries in memory, in portions. Equal entries are not returned, so that
   * a second copy of the registry never exists.
   *
   * @param keys the keys of entries that may differ
   */
  async *differences(select: Select, keys: 'all' | ReadonlySet<string>): AsyncGenerator<Difference<Entity>[], void> {
    const found = new Set<string>();
    const pages = keys === 'all' ? this.reader.inPages(select) : this.reader.withKeys(select, keys);
    for await (const page of pages) {
      const differing = page.filter((entry) => !isSame(entry, this.entries.get(this.keyOf(entry))));
      for (const entry of page) found.add(this.keyOf(entry));
      yield differing.map((entry) => ({ key: this.keyOf(entry), entry }));
    }
    const candidates = keys === 'all' ? [...this.entries.keys()] : [...keys];
    yield candidates.filter((key) => !found.has(key)).map((key) => ({ key, entry: undefined }));
  }

  apply({ key, entry }: Difference<Entity>): void {
    if (entry === undefined) this.entries.delete(key);
    else this.entries.set(key, entry);
  }

  private keyOf(entry: Entity): string {
    return String(entry[this.key]);
  }
}

function isSame<Entity extends object>(one: Entity, other: Entity | undefined): boolean {
  if (other === undefined) return false;
  return Object.entries(one).every(([property, value]) => {
    const otherValue = other[property as keyof Entity];
    return value === otherValue || (value instanceof Object && JSON.stringify(value) === JSON.stringify(otherValue));
  });
}
