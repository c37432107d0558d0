import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

type Content = Record<string, { schema: object }>;
type Response = { $ref?: string; content?: Content };
type Operation = { responses: Record<string, Response> };

interface DescribedPath {
  pattern: RegExp;
  onPublic: boolean;
  onManagement: boolean;
  operations: Record<string, Operation>;
}

/** The parts of the service's OpenAPI document that this class reads. */
export interface OpenApiResponsesDocument {
  paths: Record<string, { servers: { url: string }[] } & Record<string, Operation>>;
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

const PAGE_FILE = /\.(css|js|svg)$/;

const ajv = addFormats.default(new Ajv2020({ strict: false }));
/** Compiled schemas, shared by documents with equal schemas. */
const compiled = new Map<string, ValidateFunction>();

/** Checks responses against the OpenAPI document of the service. */
export class OpenApiResponses {
  private readonly paths: DescribedPath[];
  private readonly validators = new WeakMap<object, ValidateFunction>();

  constructor(private readonly document: OpenApiResponsesDocument) {
    // paths with fewer parameters first, because they take precedence
    const byParameters = Object.entries(document.paths).sort(
      ([one], [other]) => one.split('{').length - other.split('{').length,
    );
    this.paths = byParameters.map(([path, operations]) => ({
      pattern: patternOf(path),
      onPublic: operations.servers.some(({ url }) => url !== '/'),
      onManagement: operations.servers.some(({ url }) => url === '/'),
      operations,
    }));
  }

  /** How a response violates the document; `undefined` if it does not. */
  violationOf(received: ReceivedResponse): string | undefined {
    const { status, type, text } = received;
    if (PAGE_FILE.test(received.path)) return undefined; // the document omits the files of pages
    const operation = this.methodsAt(received)?.[received.method.toLowerCase()];
    if (!operation && ![400, 404, 405, 503].includes(status)) return 'not in the OpenAPI document';
    const declared = operation ? operation.responses[status] : { content: this.errorContent() };
    const response = declared?.$ref ? this.component(declared.$ref) : declared;
    if (!response) return 'a status that the OpenAPI document does not have';
    if (!response.content) {
      if (text !== '') return 'a body that the OpenAPI document does not have';
      return NO_CONTENT.includes(status) && type !== '' ? `${type}, although ${status} has no content` : undefined;
    }
    const media = response.content[type] ?? response.content['*/*'];
    if (!media) return `${type}, which the OpenAPI document does not have`;
    if (!type.startsWith('application/json')) return undefined;
    const body = parsedJson(text);
    if (body === undefined) return 'a body that is not JSON';
    const valid = this.validator(media.schema);
    return valid(body) ? undefined : ajv.errorsText(valid.errors);
  }

  /** The operations of a path, by their methods in lower case. A slash at the end of the path is ignored. */
  methodsAt({ isManagement, path, method }: Pick<ReceivedResponse, 'isManagement' | 'path' | 'method'>) {
    const matching = this.paths.filter(
      (each) => (isManagement ? each.onManagement : each.onPublic) && each.pattern.test(normalized(path)),
    );
    const found = matching.find(({ operations }) => Object.hasOwn(operations, method.toLowerCase())) ?? matching[0];
    return found?.operations;
  }

  private component(reference: string): Response | undefined {
    return this.document.components.responses[reference.split('/').at(-1) as string];
  }

  private errorContent(): Content {
    return { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };
  }

  private validator(schema: object): ValidateFunction {
    const known = this.validators.get(schema);
    if (known) return known;
    const whole = { ...schema, components: { schemas: this.document.components.schemas } };
    const key = JSON.stringify(whole);
    const valid = compiled.get(key) ?? ajv.compile(whole);
    compiled.set(key, valid);
    this.validators.set(schema, valid);
    return valid;
  }
}

/** `undefined` if the text is not JSON. */
function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A slash at the end of a path is ignored. */
const normalized = (path: string) => path.replace(/([^/])\/$/, '$1');

function patternOf(path: string): RegExp {
  return new RegExp(
    `^${normalized(path)
      .replace(/[.]/g, '\\.')
      .replace(/\{\w+\}/g, '[^/]+')}$`,
  );
}
