import { EXAMPLE } from '../../src/platform/http/api-examples.js';
import { type OpenApi, type Operation, resolved, type Schema } from './openapi-texts.js';

/** A request that is composed of the examples of an OpenAPI document. */
export interface ExampleRequest {
  /** `POST /v2/customer/token cookie`: the operation and the title of the form of its body. */
  name: string;
  isManagement: boolean;
  method: string;
  /** With the query. */
  path: string;
  /** The header parameters. */
  headers: Record<string, string>;
  body?: string;
  /** The names of the security schemes, one of which the request needs; '' if it may have none. */
  schemes: string[];
}

/** Parameters that continue an earlier response. */
const FROM_EARLIER_RESPONSES = ['after', 'cursor', 'If-Match'];

const asForm = (body: object) => new URLSearchParams(body as Record<string, string>).toString();

/** One request for each form of the body of each operation, or one request if the operation has no body. */
export function exampleRequestsOf(document: OpenApi): ExampleRequest[] {
  return Object.entries(document.paths).flatMap(([path, { servers, ...operations }]) =>
    Object.entries(operations as unknown as Record<string, Operation & { security?: object[] }>).flatMap(
      ([method, operation]) => {
        const examplesIn = (part: string) =>
          operation.parameters
            .filter((each) => each.in === part && !FROM_EARLIER_RESPONSES.includes(each.name))
            .map((each): [string, string] => [each.name, `${each.example}`]);
        const query = new URLSearchParams(examplesIn('query')).toString();
        const filled = examplesIn('path').reduce(
          (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value)),
          path,
        );
        const request = {
          isManagement: servers[0]?.url === '/',
          method: method.toUpperCase(),
          path: query ? `${filled}?${query}` : filled,
          headers: Object.fromEntries(examplesIn('header')),
          schemes: (operation.security?.length ? operation.security : [{}]).map(
            (scheme) => Object.keys(scheme)[0] ?? '',
          ),
        };
        const bodies = bodiesOf(document, operation);
        const named = bodies.length > 0 ? bodies : [{ title: '', headers: {}, body: undefined }];
        return named.map(({ title, headers, body }) => ({
          ...request,
          name: `${request.method} ${path} ${title}`.trim(),
          headers: { ...request.headers, ...headers },
          ...(body !== undefined && { body }),
        }));
      },
    ),
  );
}

function bodiesOf(document: OpenApi, { requestBody }: Operation) {
  const [first] = Object.entries(requestBody?.content ?? {});
  if (!first) return [];
  const [type, { schema }] = first;
  const forms = (schema.oneOf as Schema[] | undefined) ?? [schema];
  return forms.map((form) => {
    const { title, ...described } = resolved(document, form);
    const body = exampleOf(described) as object;
    return {
      title: String(title ?? Reflect.get(body, 'grant_type') ?? ''),
      headers: { 'content-type': type },
      body: type.includes('form') ? asForm(body) : JSON.stringify(body),
    };
  });
}

/** The example of a schema, with the required fields only. */
function exampleOf({ examples, properties, required = [], items, anyOf, ...schema }: Schema): unknown {
  if (examples) return examples[0];
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (anyOf) return exampleOf((anyOf as Schema[])[0] as Schema);
  if (items) return [exampleOf(items)];
  const fields = Object.entries(properties ?? {}).filter(([name]) => (required as string[]).includes(name));
  return Object.fromEntries(fields.map(([name, field]) => [name, exampleOf(field)]));
}

/** Replaces the values that stand for secrets and ids of a running service, such as a token. */
export function withValues(
  request: ExampleRequest,
  values: Partial<Record<keyof typeof EXAMPLE, string>>,
): ExampleRequest {
  let text = JSON.stringify(request);
  for (const [name, value] of Object.entries(values)) {
    const example = `${EXAMPLE[name as keyof typeof EXAMPLE]}`;
    text = text.replaceAll(example, value).replaceAll(encodeURIComponent(example), encodeURIComponent(value));
  }
  return JSON.parse(text);
}
