import {
  ACME_AGENT,
  ACME_BACKEND,
  ACME_NATIVE,
  ACME_PAGE,
  ACME_SITE,
  PUBLIC_ORIGIN,
  PUBLIC_SITE,
} from './test-registry.js';
import { request, type TestResponse, type TestService } from './test-service.js';

/** The origin of the forms of the authorization page, as browsers send it. */
export const AUTH_ORIGIN = 'https://auth.example';
export const BACKEND_CALLBACK = 'https://backend.acme.example/callback';
export const NATIVE_CALLBACK = 'example.acme:/callback';
export const FORM = 'application/x-www-form-urlencoded';

/** The parameters of an authorization request. An array repeats a parameter. `undefined` omits it. */
export type Query = Record<string, string | string[] | undefined>;

export const FOR_TOKEN: Query = { response_type: 'token', client_id: ACME_SITE, redirect_uri: ACME_PAGE };
export const FOR_PUBLIC: Query = { ...FOR_TOKEN, client_id: PUBLIC_SITE, redirect_uri: `${PUBLIC_ORIGIN}/` };
export const FOR_CODE: Query = { response_type: 'code', client_id: ACME_BACKEND, redirect_uri: BACKEND_CALLBACK };
export const FOR_NATIVE: Query = { response_type: 'code', client_id: ACME_NATIVE, redirect_uri: NATIVE_CALLBACK };

/** Composed without `URLSearchParams`, which would encode characters that browsers send unchanged. */
export function queryOf(parameters: Query): string {
  return Object.entries(parameters)
    .flatMap(([name, value]) => [value ?? []].flat().map((each) => `${name}=${encodeURIComponent(each)}`))
    .join('&');
}

/** A browser at the authorization page. It stores cookies and sends forms. It follows no redirect to another page. */
export class AgentBrowser {
  readonly cookies = new Map<string, string>();

  constructor(
    readonly service: Pick<TestService, 'url'>,
    private readonly headers: Record<string, string> = {},
  ) {}

  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  open(parameters: Query | string, headers: Record<string, string> = {}): Promise<TestResponse> {
    return this.send('GET', `/?${typeof parameters === 'string' ? parameters : queryOf(parameters)}`, headers);
  }

  async send(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<TestResponse> {
    const cookieHeader = this.cookies.size === 0 ? {} : { cookie: this.cookie };
    const init = {
      method,
      headers: { ...this.headers, ...cookieHeader, ...headers },
      ...(body !== undefined && { body }),
    };
    const response = await request(this.service.url + path, init);
    for (const line of response.cookies) this.storeCookie(line);
    return response;
  }

  /** Fills in the first form of a page, or the form with this `action`, and sends it as a browser does. */
  submit(page: TestResponse, fields: Record<string, string>, action?: string, headers: Record<string, string> = {}) {
    const form = formOf(page, action);
    return this.post(form.action, { ...form.hidden, ...fields }, headers);
  }

  post(
    path: string,
    fields: Record<string, string> | string,
    headers: Record<string, string> = {},
  ): Promise<TestResponse> {
    const body = typeof fields === 'string' ? fields : new URLSearchParams(fields).toString();
    return this.send('POST', path, { 'content-type': FORM, origin: AUTH_ORIGIN, ...headers }, body);
  }

  /** Opens the page and signs in. Returns the response to the sign-in form. */
  async signIn(agent = ACME_AGENT, parameters: Query = FOR_TOKEN): Promise<TestResponse> {
    return this.submit(await this.open(parameters), agent);
  }

  /** Signs in and continues. Returns the response to the application or the consent page. */
  async authorize(parameters: Query = FOR_TOKEN, agent = ACME_AGENT): Promise<TestResponse> {
    return this.follow(await this.signIn(agent, parameters));
  }

  /** Opens the path of the service to which a response leads. */
  follow(response: TestResponse): Promise<TestResponse> {
    return this.send('GET', targetOf(response));
  }

  private storeCookie(line: string): void {
    const [pair = ''] = line.split(';');
    const name = pair.slice(0, pair.indexOf('='));
    const value = pair.slice(pair.indexOf('=') + 1);
    if (value === '') this.cookies.delete(name);
    else this.cookies.set(name, value);
  }
}

/** The `action` and the hidden fields of a form on a page. */
export function formOf({ text }: TestResponse, action?: string): { action: string; hidden: Record<string, string> } {
  for (const [, target = '', fields = ''] of text.matchAll(
    /<form method="post" action="([^"]*)"[^>]*>(.*?)<\/form>/gs,
  )) {
    if (action !== undefined && action !== target) continue;
    const hidden = fields.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g);
    return {
      action: target,
      hidden: Object.fromEntries([...hidden].map(([, name, value]) => [name, unescaped(value)])),
    };
  }
  throw new Error(`no such form on the page: ${text}`);
}

export function unescaped(html = ''): string {
  const entities = { '&quot;': '"', '&#39;': "'", '&lt;': '<', '&gt;': '>', '&amp;': '&' };
  return html.replaceAll(/&(quot|#39|lt|gt|amp);/g, (entity) => entities[entity as keyof typeof entities]);
}

/** The URL to which a redirect, or the page after a form, leads. Empty if the response leads nowhere. */
export function targetOf({ headers, text }: TestResponse): string {
  const [, refresh] = /<meta http-equiv="refresh" content="0; url=([^"]*)">/.exec(text) ?? [];
  return headers.get('location') ?? unescaped(refresh);
}

/** The response to an application, from the query or the fragment of the URL to which a response leads. */
export function redirected(response: TestResponse): {
  target: string;
  mode: string;
  parameters: Record<string, string>;
} {
  const location = targetOf(response);
  const [target = ''] = location.split(/[?#]/, 1);
  const parameters = new URLSearchParams(location.slice(target.length + 1));
  return { target, mode: location[target.length] ?? '', parameters: Object.fromEntries(parameters) };
}

/** An agent access token from the page, as a web application gets it. */
export async function implicitToken(
  service: Pick<TestService, 'url'>,
  parameters = FOR_TOKEN,
  agent = ACME_AGENT,
): Promise<string> {
  const response = await new AgentBrowser(service).authorize(parameters, agent);
  return redirected(response).parameters.access_token as string;
}

/**
 * A code from the page, which an application sends to `/v2/token`. Signs in if the browser is not signed in, and allows
 * the request if the page asks for consent.
 */
export async function codeOf(browser: AgentBrowser, more: Query = {}): Promise<string> {
  let response = await browser.open({ ...FOR_CODE, ...more });
  if (isForm(response, '/sign-in')) {
    response = await browser.follow(await browser.submit(response, ACME_AGENT));
  }
  if (isForm(response, '/consent')) response = await browser.submit(response, { decision: 'allow' });
  return redirected(response).parameters.code as string;
}

/** Whether a response is a page with a form with this `action`. */
export function isForm({ text }: TestResponse, action: '/sign-in' | '/consent'): boolean {
  return text.includes(`action="${action}"`);
}
