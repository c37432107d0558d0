import type { Parameters } from '../token-request.js';

/** A request of the kit: the body as an object for JSON, or as a text. */
export interface SentRequest {
  method?: string;
  url?: string;
  path: string;
  /** The path as the route declares it, with the names of its parameters. */
  route: string;
  headers: Record<string, string>;
  body: Parameters | string | Buffer | undefined;
}

/** The parameters of the body. A body may be empty. */
export const parametersOf = ({ body }: SentRequest): Parameters => (isParameters(body) ? body : {});

export const isParameters = (body: SentRequest['body']): body is Parameters =>
  typeof body === 'object' && !Buffer.isBuffer(body);

/** The parameters of the path, of the query and of the body. */
export function allParametersOf(sent: SentRequest): Parameters {
  const { pathname, searchParams } = new URL(sent.path, 'http://kit');
  const parts = pathname.split('/');
  const named = sent.route
    .split('/')
    .flatMap((part, at) => (part.startsWith('{') ? [[part.slice(1, -1), parts[at]]] : []));
  return { ...Object.fromEntries(named), ...Object.fromEntries(searchParams), ...parametersOf(sent) };
}

/** The request with another text for a parameter of the body, the path or the query. */
export function withText(sent: SentRequest, name: string, text: string): SentRequest {
  const parameters = parametersOf(sent);
  if (name in parameters) return { ...sent, body: { ...parameters, [name]: text } };
  const { pathname, searchParams } = new URL(sent.path, 'http://kit');
  const at = sent.route.split('/').indexOf(`{${name}}`);
  if (at < 0) searchParams.set(name, text);
  const path = pathname.split('/').map((part, index) => (index === at ? text : part));
  return { ...sent, path: `${path.join('/')}${searchParams.size > 0 ? `?${searchParams}` : ''}` };
}
