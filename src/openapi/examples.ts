import type { ApiExamples } from '../platform/http/api-route.js';
import type { ObjectSchema, Schema } from './schemas.js';

/** The `example` or the `examples` of a media type. */
export type MediaExamples = { example?: unknown; examples?: Record<string, { value: unknown }> };

/** The example of a schema, composed of the examples of its parts; `undefined` if a required part has none. */
export function exampleOf(schema: Schema): unknown {
  const { examples, const: constant, enum: values, properties, items, anyOf } = schema;
  if (Array.isArray(examples)) return examples[0];
  if (constant !== undefined) return constant;
  if (Array.isArray(values)) return values[0];
  if (properties) return objectExample(schema as ObjectSchema, Object.keys(properties));
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0]);
  const item = items ? exampleOf(items as Schema) : undefined;
  return item === undefined ? undefined : [item];
}

/**
 * The examples of an object, by their titles.
 *
 * @param byDefault the fields of the only example, whose title is `''`, if `examples` is omitted
 */
export function objectExamples(
  schema: ObjectSchema,
  examples: ApiExamples | undefined,
  byDefault: 'all' | 'required',
): Map<string, unknown> {
  const { required = [], properties = {} } = schema;
  const all: ApiExamples = examples ?? { '': byDefault === 'all' ? Object.keys(properties) : [] };
  const composed = Object.entries(all).map(([title, fields]): [string, unknown] => [
    title,
    Array.isArray(fields) ? objectExample(schema, [...required, ...fields]) : fields,
  ]);
  return new Map(composed.filter(([, value]) => value !== undefined));
}

/** The examples for a media type. */
export function mediaExamples(examples: Map<string, unknown>): MediaExamples {
  const [first] = examples;
  if (!first) return {};
  if (examples.size === 1) return { example: first[1] };
  return { examples: Object.fromEntries([...examples].map(([title, value]) => [title, { value }])) };
}

function objectExample({ properties = {}, required = [] }: ObjectSchema, fields: string[]): object | undefined {
  const entries = Object.entries(properties)
    .filter(([name]) => fields.includes(name))
    .map(([name, property]) => [name, exampleOf(property)] as const);
  if (entries.some(([name, value]) => value === undefined && required.includes(name))) return undefined;
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}
