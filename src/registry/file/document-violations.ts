import { setImmediate as nextTick } from 'node:timers/promises';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import { violationsOf } from '../../platform/validation-violations.js';
import { REGISTRY_RESOURCES } from '../resources/registry-resources.js';
import { RegistryDocument } from './registry-document.js';
import type { PlainDocument } from './yaml-document.js';

/** Entries that are validated at once. The event loop serves requests between two portions. */
const ENTRIES_PER_PORTION = 100;

/**
 * Validates a document by its classes, in portions. The violations are unknown fields and wrong types.
 *
 * @returns the document and its violations
 */
export async function validateDocument(plain: PlainDocument): Promise<[RegistryDocument, string[]]> {
  const lists = REGISTRY_RESOURCES.map(({ list }) => list).filter((list) => Array.isArray(plain[list]));
  const [document, violations] = validate({ ...plain, ...Object.fromEntries(lists.map((list) => [list, []])) });
  for (const list of lists) {
    const entries = plain[list] as unknown[];
    const validated: unknown[] = [];
    for (let first = 0; first < entries.length; first += ENTRIES_PER_PORTION) {
      const [portion, found] = validate({ [list]: entries.slice(first, first + ENTRIES_PER_PORTION) });
      validated.push(...(portion[list] as unknown[]));
      violations.push(...found.map((violation) => atIndex(violation, first)));
      await nextTick();
    }
    document[list] = validated;
  }
  return [document, [...new Set(violations)]];
}

/** A violation of an entry of a portion, with the index of the entry in the whole list. */
function atIndex(violation: string, first: number): string {
  return violation.replace(/^(\w+)\[(\d+)\]/, (_, list, index) => `${list}[${first + Number(index)}]`);
}

function validate(plain: PlainDocument): [RegistryDocument, string[]] {
  const document = plainToInstance(RegistryDocument, plain, { exposeDefaultValues: true });
  return [document, violationsOf(validateSync(document, { whitelist: true, forbidNonWhitelisted: true }))];
}
