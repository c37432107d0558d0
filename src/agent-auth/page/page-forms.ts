import { OptionalText } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';

const EXAMPLE_REQUEST = new URLSearchParams({
  response_type: 'code',
  client_id: EXAMPLE.serverClientId,
  redirect_uri: EXAMPLE.redirectUri,
}).toString();

/**
 * The field that all forms of the pages have. Every field is optional, because each route decides what a missing field
 * means.
 */
export class PageForm {
  @OptionalText(
    'The hidden field of the form, which binds it to the browser that loaded the page.',
    'EXAMPLE-CSRF-TOKEN',
  )
  csrf?: string;
}

/** A form about an authorization request. */
class RequestForm extends PageForm {
  @OptionalText('The hidden field of the form with the query of the authorization request.', EXAMPLE_REQUEST)
  request?: string;
}

export class SignInForm extends RequestForm {
  @OptionalText('The email of the agent.', EXAMPLE.agentEmail)
  email?: string;

  @OptionalText('The password of the agent.', EXAMPLE.agentPassword)
  password?: string;
}

export class ConsentForm extends RequestForm {
  @OptionalText('The scopes that the page showed, separated by spaces.', EXAMPLE.scope)
  scope?: string;

  @OptionalText('`allow` or `deny`.', 'allow')
  decision?: string;
}
