import { OptionalText, Text } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { declaredProperties } from '../../platform/validation.js';

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
