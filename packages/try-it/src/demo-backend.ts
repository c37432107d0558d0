import { Configuration, OAuthError } from '@customer-authorization/service/grant';
import { Injectable } from '@nestjs/common';
import { AgentSignIn } from './agent-sign-in.js';
import { DEMO, signedInUrl } from './demo-registry.js';
import { DemoSetup } from './demo-setup.js';
import { demoAssertion } from './demo-sign-in.js';

/** A request that the demo backend sent, and its response. */
export interface BackendExchange {
  /** The request has a placeholder in place of the agent token, because a browser must never have the token. */
  request: { method: string; url: string; headers: Record<string, string>; body: object };
  response: { status: number; headers: Record<string, string>; body: object };
  /** The payload of the agent token, without the signature. */
  agentTokenClaims: object;
}

const TIMEOUT_MS = 5_000;
const PATH = '/v2/customer/token';
const PLACEHOLDER = 'Bearer <the agent token, which stays in the backend>';
const SHOWN_HEADERS = ['content-type', 'cache-control', 'retry-after', 'www-authenticate', 'x-request-id'];
const CONTENT_TYPE = 'application/json';

/** Acts as the backend of the demo organization: it signs in as its agent and calls the service over HTTP. */
@Injectable()
export class DemoBackend {
  /** The token of the last sign-in. It is used until the service rejects it. */
  private token: string | undefined;

  constructor(
    private readonly setup: DemoSetup,
    private readonly configuration: Configuration,
  ) {}

  /**
   * Gets a customer token for a user of the organization.
   *
   * @param url the URL at which this process reaches itself
   */
  async customerOf(externalId: string, url: string): Promise<BackendExchange> {
    const body = {
      ...{ grant_type: 'agent_token', client_id: DEMO.serverClientId },
      ...{ response_type: 'token', external_id: externalId },
    };
    const headersWith = (Authorization: string) => ({ 'Content-Type': CONTENT_TYPE, Authorization });
    const send = (token: string) =>
      fetch(url + PATH, {
        method: 'POST',
        headers: headersWith(`Bearer ${token}`),
        body: JSON.stringify(body),
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
    let token = this.token ?? (await this.signIn(url));
    let response = await send(token);
    if (response.status === 401) {
      token = await this.signIn(url);
      response = await send(token);
    }
    this.token = token;
    const { status, headers } = response;
    return {
      request: { method: 'POST', url: PATH, headers: headersWith(PLACEHOLDER), body },
      response: { status, headers: shownHeaders(headers), body: (await response.json()) as object },
      agentTokenClaims: claimsOf(token),
    };
  }

  /** Signs an assertion about a user, as if the user had a session at this backend. */
  assertionAbout(userId: string): string {
    const { clientId, organizationId } = DEMO;
    const signIn = { userId, audience: this.configuration.AUTH_URL, clientId, organizationId };
    return demoAssertion(signIn, this.credentials().clientSecret);
  }

  private credentials() {
    const credentials = this.setup.credentials();
    if (!credentials) throw OAuthError.notFound();
    return credentials;
  }

  private async signIn(url: string): Promise<string> {
    const { AUTH_URL } = this.configuration;
    const redirectUri = signedInUrl(AUTH_URL);
    return new AgentSignIn(url, AUTH_URL).token({
      ...{ clientId: DEMO.serverClientId, redirectUri, email: DEMO.agentEmail },
      ...this.credentials(),
    });
  }
}

/** The headers that a caller needs. The page shows the same of its own requests. */
function shownHeaders(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => SHOWN_HEADERS.includes(name)));
}

function claimsOf(token: string): object {
  return JSON.parse(Buffer.from(token.split('.')[1] as string, 'base64url').toString());
}
