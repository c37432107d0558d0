import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

/** Parts of an OpenAPI document, for tests of its texts. */
export interface Schema extends Record<string, unknown> {
  properties?: Record<string, Schema>;
  items?: Schema;
  description?: string;
  examples?: unknown[];
}

export interface Media {
  schema: Schema;
}

interface Texts {
  description?: string;
  example?: unknown;
}

export interface ApiResponse extends Texts {
  $ref?: string;
  headers?: Record<string, Texts & { schema: Schema }>;
  content?: Record<string, Media>;
}

export interface Operation extends Texts {
  summary: string;
  parameters: (Texts & { name: string; in: string; schema: Schema })[];
  requestBody?: { content: Record<string, Media> };
  responses: Record<string, ApiResponse>;
}

export interface OpenApi {
  paths: Record<string, { servers: { url: string }[] } & Record<string, Operation>>;
  components: Record<'schemas' | 'responses' | 'examples', Record<string, Schema & ApiResponse & { value?: unknown }>>;
}

/** A schema or media type with the path of its names, for the message of a failure. */
type Named<Part> = [name: string, part: Part];

export function operationsOf({ paths }: OpenApi): Named<Operation>[] {
  return Object.entries(paths).flatMap(([path, { servers: _servers, ...methods }]) =>
    Object.entries(methods as Record<string, Operation>).map(
      ([method, operation]): Named<Operation> => [`${method.toUpperCase()} ${path}`, operation],
    ),
  );
}

/** What a reference leads to; the part itself if it is no reference. */
export function resolved<Part extends object>(document: OpenApi, part: Part): Part {
  const { $ref } = part as { $ref?: string };
  const [kind = '', name = ''] = $ref?.replace('#/components/', '').split('/') ?? [];
  return $ref === undefined ? part : (document.components[kind as 'schemas'][name] as unknown as Part);
}

/** The media types of the requests and responses of an operation. */
export function mediaOf(document: OpenApi, [name, { requestBody, responses }]: Named<Operation>): Named<Media>[] {
  const contents: Named<Record<string, Media>>[] = [
    [`${name} body`, requestBody?.content ?? {}],
    ...Object.entries(responses).map(
      ([status, response]): Named<Record<string, Media>> => [
        `${name} ${status}`,
        resolved(document, response).content ?? {},
      ],
    ),
  ];
  return contents.flatMap(([at, content]) =>
    Object.entries(content).map(([type, media]): Named<Media> => [`${at} ${type}`, media]),
  );
}

/** All properties in a schema, at any depth. */
export function propertiesOf(document: OpenApi, [name, schema]: Named<Schema>): Named<Schema>[] {
  const { properties = {}, items } = resolved(document, schema);
  const alternatives = ['oneOf', 'anyOf'].flatMap((key) => (resolved(document, schema)[key] as Schema[]) ?? []);
  const named = Object.entries(properties).map(([field, property]): Named<Schema> => [`${name}.${field}`, property]);
  const nested: Named<Schema>[] = [...named, ...alternatives.map((each): Named<Schema> => [name, each])];
  if (items) nested.push([`${name}[]`, items]);
  return [...named, ...nested.flatMap((each) => propertiesOf(document, each))];
}

/** Whether a property has an example: its own, a fixed value, or the examples of its parts. */
export function hasExample({ examples, properties, items, anyOf, ...schema }: Schema): boolean {
  if (examples !== undefined || 'const' in schema) return true;
  if (anyOf) return (anyOf as Schema[]).some(hasExample);
  if (properties) return Object.values(properties).every(hasExample);
  return items !== undefined && hasExample(items);
}

const validators = new WeakMap<OpenApi, (schema: string, value: unknown) => string | undefined>();

/** How a value violates a schema of a document. Each schema is compiled once, because that takes long. */
export function violationOf(document: OpenApi, schema: object, value: unknown): string | undefined {
  const validate = validators.get(document) ?? validatorOf(document);
  validators.set(document, validate);
  return validate(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/'), value);
}

function validatorOf({ components }: OpenApi) {
  const ajv = addFormats.default(new Ajv2020({ strict: false }));
  ajv.addSchema({ $id: 'document', components });
  const compiled = new Map<string, ValidateFunction>();
  return (schema: string, value: unknown) => {
    const validate = compiled.get(schema) ?? ajv.compile(JSON.parse(schema));
    compiled.set(schema, validate);
    return validate(value) ? undefined : ajv.errorsText(validate.errors);
  };
}
