import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

interface Response {
  $ref?: string;
  content?: Record<string, { schema: object }>;
}
type Operations = Record<string, { responses: Record<string, Response> }>;

/** The parts of the service's OpenAPI document that this class reads. */
export interface OpenApiResponsesDocument {
  paths: Record<string, { servers: { url: string }[] } & Operations>;
  components: { responses: Record<string, Response>; schemas: Record<string, object> };
}

/** A response with its request, reduced to the parts that the document describes. */
export interface ReceivedResponse {
  isManagement: boolean;
  method: string;
  path: string;
  status: number;
  type: string;
  text: string;
}

/** Statuses whose responses have no content, and so no `Content-Type`. */
const NO_CONTENT = [204, 205, 304];
/** Statuses that a response may have without an operation in the document. */
const WITHOUT_OPERATION = [400, 404, 405, 503];
const PAGE_FILE = /\.(css|js|svg)$/;
const ERROR: Response = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } };

const ajv = addFormats.default(new Ajv2020({ strict: false }));
/** Compiled schemas, shared by documents with equal schemas. */
const compiled = new Map<string, ValidateFunction>();

/** Checks responses against the OpenAPI document of the service. */
export class OpenApiResponses {
  private readonly paths: { pattern: RegExp; isOn: (isManagement: boolean) => boolean; operations: Operations }[];
  private readonly validators = new WeakMap<object, ValidateFunction>();

  constructor(private readonly document: OpenApiResponsesDocument) {
    const parameterCount = ([path]: [string, unknown]) => path.split('{').length;
    const entries = Object.entries(document.paths).sort((one, other) => parameterCount(one) - parameterCount(other));
    this.paths = entries.map(([path, operations]) => ({
      pattern: new RegExp(
        `^${normalized(path)
          .replace(/[.]/g, '\\.')
          .replace(/\{\w+\}/g, '[^/]+')}$`,
      ),
      isOn: (isManagement) => operations.servers.some(({ url }) => (url === '/') === isManagement),
      operations,
    }));
  }

  /** How a response violates the document; `undefined` if it does not. */
  violationOf(received: ReceivedResponse): string | undefined {
    const { status, type, text } = received;
    if (PAGE_FILE.test(received.path)) return undefined; // the document omits the files of pages
    const operation = this.methodsAt(received)?.[received.method.toLowerCase()];
    if (!operation && !WITHOUT_OPERATION.includes(status)) return 'not in the OpenAPI document';
    const declared = operation ? operation.responses[status] : ERROR;
    const name = declared?.$ref?.split('/').at(-1);
    const response = name === undefined ? declared : this.document.components.responses[name];
    if (!response) return 'a status that the OpenAPI document does not have';
    if (!response.content) {
      if (text !== '') return 'a body that the OpenAPI document does not have';
      return NO_CONTENT.includes(status) && type !== '' ? `${type}, although ${status} has no content` : undefined;
    }
    const media = response.content[type] ?? response.content['*/*'];
    if (!media) return `${type}, which the OpenAPI document does not have`;
    return type.startsWith('application/json') ? this.violationOfBody(text, media.schema) : undefined;
  }

  /** The operations of a path, by their methods in lower case. A slash at the end of the path is ignored. */
  methodsAt({ isManagement, path, method }: Pick<ReceivedResponse, 'isManagement' | 'path' | 'method'>) {
    const matching = this.paths.filter((each) => each.isOn(isManagement) && each.pattern.test(normalized(path)));
    const found = matching.find(({ operations }) => Object.hasOwn(operations, method.toLowerCase())) ?? matching[0];
    return found?.operations;
  }

  private violationOfBody(text: string, schema: object): string | undefined {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return 'a body that is not JSON';
    }
    const valid = this.validators.get(schema) ?? this.compile(schema);
    return valid(body) ? undefined : ajv.errorsText(valid.errors);
  }

  private compile(schema: object): ValidateFunction {
    const schemas = { Error: this.document.components.schemas.Error }; // responses refer to no other one
    const whole = { ...schema, components: { schemas } };
    const key = JSON.stringify(whole);
    const valid = compiled.get(key) ?? ajv.compile(whole);
    compiled.set(key, valid);
    this.validators.set(schema, valid);
    return valid;
  }
}

const normalized = (path: string) => path.replace(/([^/])\/$/, '$1');
