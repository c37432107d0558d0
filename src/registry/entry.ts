import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { ObjectLiteral } from 'typeorm';
import { isWellFormed, WELL_FORMED_RULE } from '../platform/text-forms.js';
import { declaredProperties } from '../platform/validation.js';
import { violationsOf } from '../platform/validation-violations.js';
import type { Columns, RegistryResource } from './resources/registry-resource.js';

/** An entry in the form of the registry file. Its fields are unknown until it is validated. */
export type Entry = Record<string, unknown>;

/** The path in messages is `clients[0]`, or an empty string for the entry of an admin request. */
export type PathAndEntry = [path: string, entry: Entry];

export type EntriesOf = (resource: RegistryResource) => PathAndEntry[];

export function isMapping(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isSameValue(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

export function fieldPath(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

export function validated<Value extends object>(type: Type<Value>, value: unknown, path = ''): [Value, string[]] {
  const instance = plainToInstance(type, value, { exposeDefaultValues: true });
  const violations = violationsOf(validateSync(instance, { whitelist: true, forbidNonWhitelisted: true }), path);
  const malformed = declaredProperties(type).filter((field) => !isWellFormed(Reflect.get(instance, field)));
  return [instance, [...violations, ...malformed.map((field) => `${fieldPath(path, field)}: ${WELL_FORMED_RULE}`)]];
}

export function toResponse(resource: RegistryResource, row: ObjectLiteral, now: number): Entry {
  const { key, responseFields } = resource;
  const generated = key.isGenerated && { [key.field]: row[key.column] };
  return { ...generated, ...resource.toEntry(row), ...responseFields?.of(row, now), from_file: row.fromFile };
}

/** A secret that matches the stored hash keeps it. `isKnown`: it is known to match. */
export async function secretColumns(
  { secret }: RegistryResource,
  entry: Entry,
  stored?: ObjectLiteral,
  isKnown = false,
): Promise<Columns<ObjectLiteral>> {
  const text = secret && entry[secret.field];
  if (!secret || typeof text !== 'string') return {};
  const hash: unknown = stored?.[secret.column];
  if (typeof hash === 'string' && (isKnown || (await secret.kind.matches(hash, text))))
    return { [secret.column]: hash };
  return { [secret.column]: await secret.kind.hash(text), ...secret.alsoSets };
}
