import type { Type } from '@nestjs/common';
import { declaredProperties, type ObjectSchema } from 'customer-authorization-service/testing-host';
import type { Parameters } from '../token-request.js';

/** A body class with its JSON Schema. */
export interface BodySchema {
  schema: ObjectSchema;
  declared: { body: Type<object> };
}

/** Parameters that every request needs, independent of the body class. */
const COMMON_PARAMETERS = ['grant_type', 'client_id'];

/** The required parameters that the body class declares. */
export function required({ schema, declared: { body } }: BodySchema): string[] {
  const names = new Set([...COMMON_PARAMETERS, ...(schema.required ?? [])]);
  return declaredProperties(body).filter((name) => names.has(name));
}

/** The JSON types that the validation rules of a parameter admit. */
export function typesOf({ schema }: BodySchema, name: string): string[] {
  const { type, const: only, enum: words } = (schema.properties[name] ?? {}) as Parameters & { enum?: unknown[] };
  if (type !== undefined) return [type].flat().map((each) => (each === 'integer' ? 'number' : `${each}`));
  if (words) return words.map(typeOf);
  return only === undefined ? [] : [typeOf(only)];
}

/** The parameters that may be a string. */
export function textsOf(context: BodySchema, names: string[]): string[] {
  return names.filter((name) => typesOf(context, name).includes('string'));
}

export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
