import { OptionalText, Text } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { declaredProperties } from '../../platform/validation.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';

/**
 * The query parameters of the authorization page, for the OpenAPI document. Their rules are in authorization-request.ts.
 */
export class AuthorizationQuery {
  @Text('`token` for web applications, `code` for servers and native applications.', 'code')
  response_type!: string;

  @Text('The application that asks for access.', EXAMPLE.serverClientId)
  client_id!: string;

  @Text('The URL that gets the response. It equals a registered one, character for character.', EXAMPLE.redirectUri)
  redirect_uri!: string;

  @OptionalText(
    'A text that the redirect repeats. Use it to bind the response to the session of the user (RFC 6749 §10.12).',
    'EXAMPLE-STATE',
  )
  state?: string;

  @OptionalText('The requested scopes, separated by spaces. If omitted, all scopes of the client.', EXAMPLE.scope)
  scope?: string;

  @OptionalText(
    'The SHA-256 of a `code_verifier`, in base64url (RFC 7636). Required for native applications.',
    EXAMPLE.codeChallenge,
  )
  code_challenge?: string;

  @OptionalText('The only method. Required with a `code_challenge`.', 'S256')
  code_challenge_method?: string;

  @OptionalText('`none` shows no page. `login` asks for the password again, `consent` for consent.', 'login')
  prompt?: string;

  @OptionalText(
    '`button` sends the response by `postMessage` to the page that opened the window. `redirect` is the default.',
    'redirect',
  )
  flow?: string;
}

export const PARAMETER_NAMES = declaredProperties(AuthorizationQuery);

/**
 * The parameters of the query string, and the values that the checks of authorization-request.ts set. A check can read
 * the values that the checks before it have set.
 */
export class AuthorizationParameters {
  client!: ClientApplication;
  redirectUri!: string;
  private readonly query: URLSearchParams;

  constructor(query: string) {
    this.query = new URLSearchParams(query);
  }

  /** The value of a parameter. A parameter without a value counts as omitted (RFC 6749 §3.1). */
  value(name: string): string | undefined {
    return this.query.get(name) || undefined;
  }

  values(name: string): string[] {
    return this.query.getAll(name);
  }

  /** A web application gets its token at the page. Any other client gets a code. */
  get expectedResponseType(): 'code' | 'token' {
    return this.client.clientType === 'web' ? 'token' : 'code';
  }

  get prompts(): string[] {
    return this.value('prompt')?.split(' ') ?? [];
  }
}
