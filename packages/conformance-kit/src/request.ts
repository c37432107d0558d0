export type Parameters = Record<string, unknown>;

/** A request that the kit sends. */
export interface SentRequest {
  method: string;
  /** The URL of another process of the service. */
  url?: string;
  /** The path as the service declares it, with parameters as `{name}`. */
  route: string;
  /** The path with its query. */
  path: string;
  headers: Record<string, string>;
  /** The parameters of the JSON body. */
  body?: Parameters;
}

/** The parameters of the path, the query and the body. */
export function parametersOf({ route, path, body }: SentRequest): Parameters {
  const { pathname, searchParams } = new URL(path, 'http://kit');
  const parts = pathname.split('/').map(decodeURIComponent);
  const ofPath = route.split('/').flatMap((part, at) => (part.startsWith('{') ? [[part.slice(1, -1), parts[at]]] : []));
  return { ...Object.fromEntries(ofPath), ...Object.fromEntries(searchParams), ...body };
}

/** The request with another value for a parameter of the path, the query or the body. */
export function withParameter(sent: SentRequest, name: string, value: unknown): SentRequest {
  const at = sent.route.split('/').indexOf(`{${name}}`);
  const { pathname, searchParams } = new URL(sent.path, 'http://kit');
  if (at < 0 && !searchParams.has(name)) return { ...sent, body: { ...sent.body, [name]: value } };
  if (at < 0) searchParams.set(name, `${value}`);
  const parts = pathname.split('/').map((part, index) => (index === at ? encodeURIComponent(wellFormed(value)) : part));
  return { ...sent, path: `${parts.join('/')}${searchParams.size > 0 ? `?${searchParams}` : ''}` };
}

/** The request without a parameter of the body. */
export function withoutParameter(sent: SentRequest, name: string): SentRequest {
  const { [name]: _removed, ...others } = sent.body ?? {};
  return { ...sent, body: others };
}

/** The request with other headers. `undefined` removes a header. */
export function withHeaders(sent: SentRequest, headers: Record<string, string | undefined>): SentRequest {
  const all = Object.entries({ ...sent.headers, ...headers });
  return {
    ...sent,
    headers: Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined)),
  };
}

/** The names of the parameters that are texts and differ between two requests. */
export function differingTexts(one: Parameters, other: Parameters): string[] {
  return Object.keys(one).filter((name) => typeof one[name] === 'string' && one[name] !== other[name]);
}

/** The text with lone surrogates replaced, because a URL cannot have them. */
const wellFormed = (value: unknown): string => Buffer.from(`${value}`).toString();
