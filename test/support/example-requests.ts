import { EXAMPLE } from '../../src/platform/http/api-examples.js';
import { examplesOf, type OpenApi, type Operation } from './openapi-texts.js';

/** A request that the OpenAPI document describes by examples. */
export interface ExampleRequest {
  /** `POST /v2/token authorization_code`: the operation and the name of the example of its body. */
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

/** One request for each example of each body of each operation, or one request if the operation has no body. */
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
        const named = bodies.length > 0 ? bodies : [{ label: '', headers: {}, body: undefined }];
        return named.map(({ label, headers, body }) => ({
          ...request,
          name: `${request.method} ${path} ${label}`.trim(),
          headers: { ...request.headers, ...headers },
          ...(body !== undefined && { body }),
        }));
      },
    ),
  );
}

function bodiesOf(document: OpenApi, { requestBody }: Operation) {
  return Object.entries(requestBody?.content ?? {}).flatMap(([type, media]) => {
    const names = Object.keys(media.examples ?? {});
    return examplesOf(document, media).map((example, index) => ({
      label: [type, names[index]].filter(Boolean).join(' '),
      headers: type === '*/*' ? {} : { 'content-type': type },
      body:
        typeof example === 'string'
          ? example
          : type.includes('form')
            ? asForm(example as object)
            : JSON.stringify(example),
    }));
  });
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
