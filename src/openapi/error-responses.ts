import { ErrorBody } from '../oauth/oauth-error.js';
import { responseSchemaOf, type Schema } from './schemas.js';

interface ErrorStatus {
  description: string;
  /** Header fields beside those of every answer. */
  headers?: string[];
}

/** What each status of an error means (protocol §2.12). */
const ERROR_STATUSES: Record<number, ErrorStatus> = {
  400: { description: 'A parameter is missing or wrong, or what it proves is not good' },
  401: { description: 'No valid bearer, or no valid client credentials', headers: ['WWW-Authenticate'] },
  403: { description: "The bearer's scope does not reach", headers: ['WWW-Authenticate'] },
  404: { description: 'There is nothing at this address' },
  409: { description: 'It does not fit what is there' },
  413: { description: 'The body is larger than 16 KiB' },
  415: { description: 'The body is compressed' },
  429: { description: 'Too many requests', headers: ['Retry-After'] },
  500: { description: 'Something nobody foresaw' },
  503: { description: 'The database, or another dependency, is away', headers: ['Retry-After'] },
};

/** The schema of every error, by the name under which the responses below refer to it. */
export function errorComponent(): Schema {
  return { Error: responseSchemaOf(ErrorBody) };
}

/** The answers of all refusals, for the components of the document. */
export function errorResponseComponents(): Schema {
  const refusals = Object.entries(ERROR_STATUSES);
  return Object.fromEntries(refusals.map(([status, refusal]) => [status, errorResponse(refusal)]));
}

/**
 * The answers of refusals at one address; a page shows them as pages too.
 *
 * @throws Error when a status has no meaning here
 */
export function errorResponsesOf(statuses: number[], isPage: boolean): Schema {
  const responses = [...new Set(statuses)].map((status) => {
    const refusal = ERROR_STATUSES[status];
    if (!refusal) throw new Error(`a route describes the status ${status}, which no refusal has`);
    return [
      status,
      isPage ? errorResponse(refusal, { 'text/html': {} }) : { $ref: `#/components/responses/${status}` },
    ];
  });
  return Object.fromEntries(responses);
}

function errorResponse({ description, headers = [] }: ErrorStatus, otherContent: Schema = {}): Schema {
  return {
    description,
    headers: Object.fromEntries(['X-Request-Id', ...headers].map((name) => [name, { schema: { type: 'string' } }])),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } }, ...otherContent },
  };
}
