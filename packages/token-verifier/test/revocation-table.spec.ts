import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RevocationTable } from '../src/revocation-table.js';

type Model = Map<string, { value: number; expiresAt: number }>;

const text = fc.oneof(fc.string({ maxLength: 3 }), fc.uuid());
const integer = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.maxSafeNat());
const expiresAt = fc.integer({ min: 1, max: 100 });
const operation = fc.oneof(
  { weight: 20, arbitrary: fc.record({ text, value: integer, expiresAt }) },
  { weight: 1, arbitrary: fc.record({ before: expiresAt }) },
);

function deleteExpired(table: RevocationTable, before: number): void {
  for (const _ of table.deleteExpired(before));
}

function raiseInModel(model: Model, maxEntries: number, operation: { text: string; value: number; expiresAt: number }) {
  const known = model.get(operation.text);
  if (!known && model.size >= maxEntries) return false;
  model.set(operation.text, {
    value: Math.max(operation.value, known?.value ?? 0),
    expiresAt: Math.max(operation.expiresAt, known?.expiresAt ?? 0),
  });
  return true;
}

describe('the table of revocations', () => {
  it('has the same entries as a map after any operations', () => {
    const run = fc.property(
      fc.integer({ min: 1, max: 400 }),
      fc.array(operation, { maxLength: 500, size: 'max' }),
      (maxEntries, operations) => {
        const table = new RevocationTable(maxEntries);
        const model: Model = new Map();
        const actual: unknown[] = [];
        const expected: unknown[] = [];
        for (const each of operations) {
          if ('before' in each) {
            deleteExpired(table, each.before);
            for (const [key, entry] of model) if (entry.expiresAt < each.before) model.delete(key);
          } else {
            actual.push(table.raise(each.text, each.value, each.expiresAt));
            expected.push(raiseInModel(model, maxEntries, each));
          }
          actual.push(table.size);
          expected.push(model.size);
        }
        for (const each of operations) {
          if ('before' in each) continue;
          actual.push(table.get(each.text));
          expected.push(model.get(each.text)?.value);
        }
        expect(actual).toEqual(expected);
      },
    );
    fc.assert(run);
  });

  it('has at most 36 bytes for each entry, all entries while it grows, and those in force after a deletion', () => {
    const table = new RevocationTable(50_000);
    expect(table.bytes).toBeLessThan(1_000_000);
    let maxBytesPerEntry = 0;
    for (let index = 0; index < 50_000; index++) {
      table.raise(`token-${index}`, 1_800_000_000_000 + index, 1 + (index % 10));
      // the bytes for each entry reach their maximum many times while the second half is added
      if (index >= 25_000) maxBytesPerEntry = Math.max(maxBytesPerEntry, table.bytes / table.size);
    }
    expect(maxBytesPerEntry).toBeLessThanOrEqual(36);
    const wrong = () => {
      let count = 0;
      for (let index = 0; index < 50_000; index++) {
        const expected = 1 + (index % 10) < before ? undefined : 1_800_000_000_000 + index;
        if (table.get(`token-${index}`) !== expected) count += 1;
      }
      return count;
    };
    let before = 0;
    expect({ size: table.size, wrong: wrong() }).toEqual({ size: 50_000, wrong: 0 });
    const { bytes } = table;
    before = 10;
    deleteExpired(table, before);
    expect({ size: table.size, wrong: wrong() }).toEqual({ size: 5_000, wrong: 0 });
    expect(table.bytes).toBeLessThan(bytes / 5);
  });

  it('has a key of its own, so the same texts have other places in another table', () => {
    const bytes = Array.from({ length: 10 }, () => {
      const table = new RevocationTable(5_000);
      for (let index = 0; index < 5_000; index++) table.raise(`token-${index}`, 1, 1);
      return table.bytes; // depends on how many texts each segment has
    });
    expect(new Set(bytes).size).toBeGreaterThan(1);
  });

  it('counts a negative integer as 0, and a moment outside of 32 bits as the nearest one inside', () => {
    const table = new RevocationTable(3);
    table.raise('far', 1, 2 ** 32 + 1);
    table.raise('early', -1, -1);
    expect([table.get('far'), table.get('early')]).toEqual([1, 0]);
    deleteExpired(table, 2);
    expect([table.get('far'), table.get('early')]).toEqual([1, undefined]);
  });
});
