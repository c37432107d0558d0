import { ErrorBody } from '../oauth/error-body.js';
import { responseSchemaOf, type Schema } from './schemas.js';

interface ErrorStatus {
  description: string;
  /** Header fields in addition to those of every response. */
  headers?: string[];
}

/** The error statuses (protocol §2.12). */
const ERROR_STATUSES: Record<number, ErrorStatus> = {
  400: { description: 'A parameter is missing or invalid, or the grant is invalid' },
  401: {
    description: 'The bearer token or the client credentials are missing or invalid',
    headers: ['WWW-Authenticate'],
  },
  403: { description: 'The bearer token lacks the required scope', headers: ['WWW-Authenticate'] },
  404: { description: 'The route or the entry does not exist' },
  409: { description: 'The request conflicts with stored data or with the registry file' },
  413: { description: 'The body is larger than 16 KiB' },
  415: { description: 'The body is compressed' },
  429: { description: 'Too many requests', headers: ['Retry-After'] },
  500: { description: 'An unexpected error' },
  503: { description: 'The database or another dependency is unavailable', headers: ['Retry-After'] },
};

/** The schema of all error responses, under the component name that `errorResponse` refers to. */
export function errorComponent(): Schema {
  return { Error: responseSchemaOf(ErrorBody) };
}

/** The response components of all error statuses. */
export function errorResponseComponents(): Schema {
  const statuses = Object.entries(ERROR_STATUSES);
  return Object.fromEntries(statuses.map(([status, error]) => [status, errorResponse(error)]));
}

/**
 * The error responses of one route. Routes of pages also have error pages.
 *
 * @throws Error if a status is not in `ERROR_STATUSES`
 */
export function errorResponsesOf(statuses: number[], isPage: boolean): Schema {
  const responses = [...new Set(statuses)].map((status) => {
    const error = ERROR_STATUSES[status];
    if (!error) throw new Error(`a route declares the status ${status}, which is not in ERROR_STATUSES`);
    return [status, isPage ? errorResponse(error, { 'text/html': {} }) : { $ref: `#/components/responses/${status}` }];
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
