import type { Port } from './fuzz-request.js';

/** The part of JSON Schema that the fuzzer uses. */
export interface Schema {
  $ref?: string;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
  minimum?: number;
  minLength?: number;
  properties?: Record<string, Schema>;
  required?: string[];
}

interface Parameter {
  name: string;
  in: string;
  required?: boolean;
  schema: Schema;
}

interface DescribedOperation {
  parameters?: Parameter[];
  security?: Record<string, string[]>[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

export interface OpenApi {
  paths: Record<string, Record<string, DescribedOperation> & { servers?: { url: string }[] }>;
  components: { schemas: Record<string, Schema> };
}

export interface Operation {
  port: Port;
  method: string;
  path: string;
  parameters: Parameter[];
  /** Names of security schemes. `none` means that the operation needs no authentication. */
  security: string[];
  /** The alternatives of the body, one for each schema and media type. */
  bodies: { mediaType: string; schema: Schema }[];
  /** The relative frequency of requests, which grows with the number of parameters. */
  weight: number;
}

/** All operations in the OpenAPI document of a running service. */
export function operationsOf({ paths, components }: OpenApi): Operation[] {
  const resolved = (schema: Schema): Schema =>
    schema.$ref ? (components.schemas[schema.$ref.split('/').at(-1) as string] as Schema) : schema;
  const alternatives = (schema: Schema): Schema[] => (schema.oneOf ?? schema.anyOf ?? [schema]).map(resolved);
  return Object.entries(paths).flatMap(([path, { servers = [], ...methods }]) =>
    Object.entries(methods).flatMap(([method, { parameters = [], security = [], requestBody }]) => {
      const content = Object.entries(requestBody?.content ?? {});
      const bodies = content.flatMap(([mediaType, { schema }]) =>
        alternatives(resolved(schema))
          .flatMap(alternatives)
          .filter(({ properties }) => properties)
          .map((each) => ({ mediaType, schema: each })),
      );
      return servers.map(({ url }) => ({
        port: url === '/' ? 'management' : 'public',
        method: method.toUpperCase(),
        path,
        parameters,
        security: security.map((each) => Object.keys(each)[0] ?? 'none'),
        bodies,
        weight: weightOf(path, parameters.length, bodies),
      }));
    }),
  );
}

/** Slow routes: they hash a password, write and reload the registry, or return a large response. */
const COSTLY = /^\/(sign-in|admin|docs\/|metrics|openapi)/;

function weightOf(path: string, parameters: number, bodies: Operation['bodies']): number {
  const fields = bodies.reduce((sum, { schema }) => sum + Object.keys(schema.properties ?? {}).length, 0);
  const weight = 1 + parameters + Math.min(fields, 12);
  return COSTLY.test(path) ? weight / 10 : weight;
}
