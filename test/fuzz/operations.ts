import type { Port } from './fuzz-request.js';

/** What this needs of JSON Schema. */
export interface Schema {
  $ref?: string;
  type?: string;
  title?: string;
  enum?: unknown[];
  const?: unknown;
  pattern?: string;
  format?: string;
  oneOf?: Schema[];
  anyOf?: Schema[];
  items?: Schema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
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
  responses?: object;
}

export interface OpenApi {
  paths: Record<string, Record<string, DescribedOperation> & { servers?: { url: string }[] }>;
  components: { schemas: Record<string, Schema> };
}

/** An address with a method, as the service's own document describes it. */
export interface Operation {
  port: Port;
  method: string;
  path: string;
  parameters: Parameter[];
  /** Names of security schemes; `none` where a caller need not say who it is. */
  security: string[];
  /** The alternatives of the body, each in one media type. */
  bodies: { mediaType: string; schema: Schema }[];
  /** How often it is asked: the more there is to get wrong, the more. */
  weight: number;
}

/** Everything that the document of a running service describes. */
export function operationsOf({ paths, components }: OpenApi): Operation[] {
  const resolved = (schema: Schema): Schema =>
    schema.$ref ? (components.schemas[schema.$ref.split('/').at(-1) as string] as Schema) : schema;
  const alternatives = (schema: Schema): Schema[] => (schema.oneOf ?? schema.anyOf ?? [schema]).map(resolved);
  return Object.entries(paths).flatMap(([path, { servers, ...methods }]) =>
    Object.entries(methods).map(([method, { parameters = [], security = [], requestBody }]) => {
      const content = Object.entries(requestBody?.content ?? {});
      const bodies = content.flatMap(([mediaType, { schema }]) =>
        alternatives(resolved(schema)).map((each) => ({ mediaType, schema: each })),
      );
      return {
        port: servers?.[0]?.url === '/' ? 'management' : 'public',
        method: method.toUpperCase(),
        path,
        parameters,
        security: security.map((each) => Object.keys(each)[0] ?? 'none'),
        bodies,
        weight: weightOf(path, parameters.length, bodies),
      };
    }),
  );
}

/** Addresses that work for long: a password is hashed, the registry is written and read again, or much is answered. */
const COSTLY = /^\/(sign-in|admin|docs\/|metrics|openapi)/;

function weightOf(path: string, parameters: number, bodies: Operation['bodies']): number {
  const fields = bodies.reduce((sum, { schema }) => sum + Object.keys(schema.properties ?? {}).length, 0);
  const weight = 1 + parameters + Math.min(fields, 12);
  return COSTLY.test(path) ? weight / 10 : weight;
}
