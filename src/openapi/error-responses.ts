import { OAuthError } from '../oauth/oauth-error.js';
import { REQUEST_ERRORS } from '../oauth/request-errors.js';
import { EXAMPLE, EXAMPLE_PAGE } from '../platform/http/api-examples.js';
import type { ApiError } from '../platform/http/api-route.js';
import type { Schema } from './schemas.js';

const DESCRIPTIONS: Record<number, string> = {
  400: 'A parameter is missing or invalid, the proof of the grant is invalid, or the client may not use the grant. `error_hint` names the parameter and the rule.',
  401: 'The bearer token or the credentials are missing, wrong, expired or ended. Get a new token, or correct the credentials.',
  403: 'The bearer token lacks the scope that `WWW-Authenticate` names.',
  404: 'The route or the entry does not exist.',
  409: 'The request conflicts with stored data. The same request fails again until the conflict is resolved.',
  413: 'The body is larger than 16 KiB.',
  415: 'The body is compressed. Send it without `Content-Encoding`.',
  429: 'There were too many requests. Repeat the request after the seconds in `Retry-After`.',
  500: 'An unexpected error. The log has the cause under the `request_id`.',
  503: 'The database or another dependency is unavailable. Repeat the request after the seconds in `Retry-After`.',
};
const HEADERS: Record<string, string> = {
  'X-Request-Id': 'The id of the request. The log has it too.',
  'WWW-Authenticate': 'How to authenticate (RFC 6750 §3, RFC 7617).',
  'Retry-After': 'The seconds to wait before the next request.',
};
/** The errors of statuses for which a route declares no error of its own. */
const DEFAULT_ERRORS = [
  REQUEST_ERRORS.noJsonObject(),
  OAuthError.invalidToken('example'),
  OAuthError.insufficientScope(EXAMPLE.scope),
  OAuthError.notFound(),
  OAuthError.conflict('the entry already exists'),
  OAuthError.payloadTooLarge(),
  OAuthError.unsupportedEncoding(),
  OAuthError.rateLimited(1, 'example'),
  OAuthError.serverError(undefined),
  OAuthError.unavailable(),
];

/** Collects the components that the error responses of all routes refer to. */
export class ErrorComponents {
  readonly responses: Record<string, Schema> = {};
  readonly examples: Record<string, Schema> = {};

  /**
   * The error responses of one route. Routes of pages also have error pages. Responses with one example are components,
   * because most routes share them.
   *
   * @param statuses statuses that have a default error unless `errors` has one
   * @throws Error if a status is not in `DESCRIPTIONS`
   */
  responsesOf(errors: ApiError[], statuses: number[], isPage: boolean): Schema {
    const all = new Set([...statuses, ...errors.map(({ status }) => status)]);
    const responses = [...all].map((status) => {
      const declared = errors.filter((error) => error.status === status);
      const shown = declared.length > 0 ? declared : DEFAULT_ERRORS.filter((error) => error.status === status);
      return [status, isPage ? this.errorPage(status, shown) : this.reference(status, shown)];
    });
    return Object.fromEntries(responses);
  }

  private reference(status: number, errors: ApiError[]): Schema {
    const [error] = errors;
    if (errors.length !== 1 || !error)
      return errorResponse(status, errors, { examples: this.exampleReferences(errors) });
    const name = `${status}.${nameOf(error)}`;
    this.responses[name] ??= errorResponse(status, errors, { example: bodyOf(error) });
    return { $ref: `#/components/responses/${name}` };
  }

  private errorPage(status: number, errors: ApiError[]): Schema {
    const { content, ...response } = errorResponse(status, errors, { examples: this.exampleReferences(errors) });
    const page = { schema: { type: 'string' }, example: EXAMPLE_PAGE };
    return { ...response, content: { ...(content as Schema), 'text/html': page } };
  }

  private exampleReferences(errors: ApiError[]): Schema {
    const references = errors.map((error) => {
      const name = nameOf(error);
      this.examples[name] ??= { summary: summaryOf(error), value: bodyOf(error) };
      return [name, { $ref: `#/components/examples/${name}` }];
    });
    return Object.fromEntries(references);
  }
}

function errorResponse(status: number, errors: ApiError[], examples: Schema): Schema {
  const description = DESCRIPTIONS[status];
  if (!description) throw new Error(`a route declares the status ${status}, which is not in DESCRIPTIONS`);
  const values: Record<string, string> = Object.assign(
    { 'X-Request-Id': EXAMPLE.requestId },
    ...errors.map(({ headers }) => headers),
  );
  const described = Object.entries(values).filter(([name]) => Object.hasOwn(HEADERS, name));
  const headers = described.map(([name, example]) => [
    name,
    { description: HEADERS[name], schema: { type: 'string' }, example },
  ]);
  return {
    description,
    headers: Object.fromEntries(headers),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' }, ...examples } },
  };
}

const bodyOf = (error: ApiError) => error.toBody(EXAMPLE.requestId);

/** The name of an error in components, whose characters OpenAPI limits. */
const nameOf = ({ code, hint = '' }: ApiError) => [code, ...(hint.match(/\w+/g) ?? [])].join('-');

const summaryOf = ({ code, hint }: ApiError) => (hint === undefined ? code : `${code}: ${hint}`);
