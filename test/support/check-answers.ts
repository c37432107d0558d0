import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Service } from '../../src/bootstrap.js';
import { OpenApiDocument } from '../../src/openapi/openapi-document.js';

/** The OpenAPI documents of the services that run, by the origins that they answer at. */
const documents = new Map<string, { isManagement: boolean; document: OpenApiDocument }>();

type Content = Record<string, { schema: object }>;
type Response = { $ref?: string; content?: Content };
type Operation = { responses: Record<string, Response> };
interface Document {
  paths: Record<string, { servers: [{ url: string }] } & Record<string, Operation>>;
  components: { responses: Record<string, Response>; schemas: Record<string, object> };
}

const ajv = addFormats.default(new Ajv2020({ strict: false }));
const compiled = new Map<string, ReturnType<typeof ajv.compile>>();
const unchecked = globalThis.fetch;

/** From now on every answer of this service, to whatever a test sends, is held against its OpenAPI document. */
export function checkAnswersOf({ application }: Service, url: string, managementUrl: string): void {
  const document = application.get(OpenApiDocument);
  documents.set(url, { isManagement: false, document });
  documents.set(managementUrl, { isManagement: true, document });
}

globalThis.fetch = async (input, init) => {
  const response = await unchecked(input, init);
  const url = new URL(input instanceof Request ? input.url : input);
  const entry = documents.get(url.origin);
  const method = (init?.method ?? 'GET').toLowerCase();
  if (!entry || ['options', 'head'].includes(method)) return response;
  const document = entry.document.read() as unknown as Document;
  const operation = operationAt(document, entry.isManagement, method, url.pathname);
  const fault = faultOf(document, operation, response, await response.clone().text());
  if (fault) throw new Error(`${method} ${url.pathname} ${response.status}: ${fault}`);
  return response;
};

function faultOf(
  document: Document,
  operation: Operation | undefined,
  { status, headers }: globalThis.Response,
  text: string,
): string | undefined {
  const type = headers.get('content-type')?.split(';')[0] ?? '';
  if (!operation && ![400, 404, 405, 503].includes(status)) return 'not in the OpenAPI document';
  const declared = operation ? operation.responses[status] : { content: errorContent(document) };
  const response = declared?.$ref ? document.components.responses[declared.$ref.split('/').at(-1) as string] : declared;
  if (!response) return 'a status that the OpenAPI document does not have';
  if (!response.content) return text === '' ? undefined : 'a body that the OpenAPI document does not have';
  const media = response.content[type] ?? response.content['*/*'];
  if (!media) return `${type}, which the OpenAPI document does not have`;
  if (!type.startsWith('application/json')) return undefined;
  const valid = validator(document, media.schema);
  return valid(JSON.parse(text)) ? undefined : ajv.errorsText(valid.errors);
}

/** An address without parameters before one with; a slash at the end is the same address. */
function operationAt({ paths }: Document, isManagement: boolean, method: string, path: string): Operation | undefined {
  const asked = path.replace(/(.)\/$/, '$1');
  const found = Object.keys(paths)
    .filter((address) => (paths[address]?.servers[0].url === '/') === isManagement)
    .sort((one, other) => one.split('{').length - other.split('{').length)
    .find((address) => matcher(address).test(asked) && paths[address]?.[method]);
  return found === undefined ? undefined : paths[found]?.[method];
}

function matcher(address: string): RegExp {
  return new RegExp(`^${address.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+')}$`);
}

function errorContent({ components }: Document): Content {
  return (components.responses[404] as { content: Content }).content;
}

/** Compiled once for all services that a test file starts. */
function validator({ components }: Document, schema: object) {
  const whole = { ...schema, components: { schemas: components.schemas } };
  const key = JSON.stringify(whole);
  const known = compiled.get(key) ?? ajv.compile(whole);
  compiled.set(key, known);
  return known;
}
