const TIMEOUT_MS = 5_000;
/** The hidden fields of the sign-in form, whose values need no HTML escapes but `&amp;`. */
const HIDDEN_FIELD = /<input type="hidden" name="(\w+)" value="([^"]*)">/g;

/** What an agent and the client of a backend sign in with. */
interface SignIn {
  clientId: string;
  clientSecret: string;
  redirectUri: string;
  email: string;
  password: string;
}

/**
 * Signs in as an agent at the authorization page, and exchanges the code for an agent token (protocol §6.4 and §6.8).
 * It does what the person and the backend of docs/integrating/backend.md do.
 */
export class AgentSignIn {
  private readonly cookies = new Map<string, string>();

  /**
   * @param url the URL of the service
   * @param authUrl its AUTH_URL, which a browser sends as the Origin of a form
   */
  constructor(
    private readonly url: string,
    private readonly authUrl: string,
  ) {}

  /** @throws Error if the service rejects one of the requests */
  async token({ clientId, clientSecret, redirectUri, email, password }: SignIn): Promise<string> {
    const query = new URLSearchParams({ response_type: 'code', client_id: clientId, redirect_uri: redirectUri });
    const page = `/?${query}`;
    const form = await this.send(page);
    const hidden = [...(await form.text()).matchAll(HIDDEN_FIELD)].map(([, name = '', value = '']) => [
      name,
      value.replaceAll('&amp;', '&'),
    ]);
    await this.send('/sign-in', { ...Object.fromEntries(hidden), email, password });
    const redirect = await this.send(page);
    const code = new URL(redirect.headers.get('location') ?? this.url).searchParams.get('code') ?? '';
    const response = await this.send('/v2/token', {
      ...{ grant_type: 'authorization_code', code, redirect_uri: redirectUri },
      ...{ client_id: clientId, client_secret: clientSecret },
    });
    const { access_token, error_hint } = (await response.json()) as { access_token?: string; error_hint?: string };
    if (!access_token) throw new Error(`the demo backend could not sign in: ${response.status} ${error_hint}`);
    return access_token;
  }

  /** Sends a form, or GET without a form. Follows no redirect, and returns the cookies that it got before. */
  private async send(path: string, form?: Record<string, string>): Promise<Response> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(path, this.url), {
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
      headers: { Cookie: cookie, ...(form && { Origin: new URL(this.authUrl).origin }) },
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      this.cookies.set(pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1));
    }
    return response;
  }
}
