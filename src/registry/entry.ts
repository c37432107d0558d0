import type { Type } from '@nestjs/common';
import { plainToInstance } from 'class-transformer';
import { validateSync } from 'class-validator';
import type { ObjectLiteral } from 'typeorm';
import { violationsOf } from '../platform/validation-violations.js';
import type { Columns, RegistryResource } from './resources/registry-resource.js';

/** An entry in the form of the registry file. Its fields are unknown until it is validated. */
export type Entry = Record<string, unknown>;

/**
 * An entry with its path in messages about violations: `clients[0]`, or an empty string for the entry of an admin
 * request.
 */
export type PathAndEntry = [path: string, entry: Entry];

/** The entries of a resource that a file or an admin request has. */
export type EntriesOf = (resource: RegistryResource) => PathAndEntry[];

/** Whether a value of a file or of a body is an object with fields. */
export function isMapping(value: unknown): value is Entry {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether two values of a column are the same. */
export function isSameValue(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other);
}

export function fieldPath(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

/** A value as an instance of the class that has its rules, with the violations of these rules. */
export function validated<Value extends object>(type: Type<Value>, value: unknown, path = ''): [Value, string[]] {
  const instance = plainToInstance(type, value, { exposeDefaultValues: true });
  return [instance, violationsOf(validateSync(instance, { whitelist: true, forbidNonWhitelisted: true }), path)];
}

/** An entry as the admin API shows it: with its key, its response fields, and whether the registry file owns it. */
export function toResponse(resource: RegistryResource, row: ObjectLiteral, now: number): Entry {
  const { key, responseFields } = resource;
  const generated = key.isGenerated && { [key.field]: row[key.column] };
  return { ...generated, ...resource.toEntry(row), ...responseFields?.of(row, now), owned_by_file: row.ownedByFile };
}

/**
 * The columns of an entry's secret. If the secret matches the stored hash, the hash does not change.
 *
 * @param isKnown whether the secret is known to match the stored hash
 */
export async function secretColumns(
  { secret }: RegistryResource,
  entry: Entry,
  stored?: ObjectLiteral,
  isKnown = false,
): Promise<Columns<ObjectLiteral>> {
  const text = secret && entry[secret.field];
  if (!secret || typeof text !== 'string') return {};
  const hash: unknown = stored?.[secret.column];
  const isUnchanged = typeof hash === 'string' && (isKnown || (await secret.kind.matches(hash, text)));
  return { [secret.column]: isUnchanged ? hash : await secret.kind.hash(text), ...secret.alsoSets };
}
