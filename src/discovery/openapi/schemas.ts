import type { Type } from '@nestjs/common';
import { IS_EMAIL, IS_ISO8601, ValidationTypes } from 'class-validator';
import { apiPropertyOf } from '../../platform/http/api-route.js';
import { loadWhenUsed } from '../../platform/load-when-used.js';
import { transformerMetadata } from '../../platform/private-members.js';
import { IS_ID_TEXT, IS_WAIT_SECONDS, MAX_ID_CHARACTERS } from '../../platform/validation/text-rules.js';
import { ARE_TEXTS, IS_ALL_OR_IDS } from '../../registry/entries/entry-rules.js';

/** A JSON Schema of draft 2020-12, which OpenAPI 3.1 uses. */
export type Schema = Record<string, unknown>;
export interface ObjectSchema extends Schema {
  type: 'object';
  properties: Record<string, Schema>;
  required?: string[];
}

/** The documents of both ports describe the same classes. */
const schemasOfClasses = new WeakMap<Type<object>, ObjectSchema>();

/**
 * The schema of a class, from its validation rules and `@ApiProperty`. Schemas of nested classes are inlined. All
 * documents share it, so do not change it.
 */
export function schemaOf(type: Type<object>): ObjectSchema {
  const known = schemasOfClasses.get(type);
  if (known) return known;
  const schema = schemaOfRules(type);
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const { description, example } = apiPropertyOf(type, name) ?? {};
    if (description !== undefined) property.description = description;
    if (example !== undefined) property.examples = [example];
  }
  schemasOfClasses.set(type, schema);
  return schema;
}

function schemaOfRules(type: Type<object>): ObjectSchema {
  type Library = typeof import('class-validator-jsonschema');
  const { targetConstructorToSchema } = loadWhenUsed<Library>('class-validator-jsonschema');
  return targetConstructorToSchema(type, {
    classTransformerMetadataStorage: transformerMetadata,
    additionalConverters: {
      // a custom rule has no schema unless its property has `@JSONSchema`
      [ValidationTypes.CUSTOM_VALIDATION]: {},
      [ARE_TEXTS]: { type: 'array', items: { type: 'string' } },
      arePublicKeys: { type: 'object' },
      isKeySetUrl: { type: 'string', format: 'uri' },
      [IS_WAIT_SECONDS]: { type: 'integer', minimum: 0, maximum: 25 },
      [IS_ID_TEXT]: { type: 'string', minLength: 1, maxLength: MAX_ID_CHARACTERS },
      [IS_ALL_OR_IDS]: {
        anyOf: [
          { type: 'string', enum: ['all'] },
          { type: 'array', items: { type: 'string' }, uniqueItems: true },
        ],
      },
      [IS_ISO8601]: { type: 'string', anyOf: [{ format: 'date' }, { format: 'date-time' }] },
      [IS_EMAIL]: { type: 'string' }, // the format `email` of JSON Schema admits ASCII only
      [ValidationTypes.NESTED_VALIDATION]: ({ target, propertyName }): never => {
        const nested = transformerMetadata.findTypeMetadata(target as Type, propertyName)?.typeFunction();
        if (!nested) throw new Error(`${(target as Type).name}.${propertyName}: has no class; use @Nested(() => …)`);
        return schemaOf(nested as Type<object>) as never;
      },
    },
  }) as unknown as ObjectSchema;
}

/** It admits no undeclared fields, except the `optional` ones. */
export function responseSchemaOf(type: Type<object>, optional: Record<string, Schema> = {}): ObjectSchema {
  const schema = schemaOf(type);
  return { ...schema, properties: { ...schema.properties, ...optional }, additionalProperties: false };
}

/** The schema of a merge patch (RFC 7396). Each field may be omitted, or be `null`, which removes it. */
export function patchOf(type: Type<object>): ObjectSchema {
  const { properties } = schemaOf(type);
  const fields = Object.entries(properties).map(([name, { description, examples, ...schema }]) => [
    name,
    { ...(description !== undefined && { description, examples }), anyOf: [schema, { type: 'null' }] },
  ]);
  return { type: 'object', properties: Object.fromEntries(fields) };
}

export function without(schema: ObjectSchema, name: string): ObjectSchema {
  const { [name]: _removed, ...properties } = schema.properties;
  return { ...schema, properties, required: (schema.required ?? []).filter((each) => each !== name) };
}

export function anyOf(schemas: Schema[]): Schema {
  return schemas.length === 1 ? (schemas[0] as Schema) : { anyOf: schemas };
}

export function oneOf(schemas: Schema[]): Schema {
  return schemas.length === 1 ? (schemas[0] as Schema) : { oneOf: schemas };
}
