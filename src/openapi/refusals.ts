import { ErrorBody } from '../oauth/oauth-error.js';
import { answerOf, type Schema } from './schemas.js';

interface Refusal {
  description: string;
  /** Header fields beside those of every answer. */
  headers?: string[];
}

/** What each status of an error means (protocol §2.12). */
const REFUSALS: Record<number, Refusal> = {
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
  return { Error: answerOf(ErrorBody) };
}

/** The answers of all refusals, for the components of the document. */
export function refusalComponents(): Schema {
  const refusals = Object.entries(REFUSALS);
  return Object.fromEntries(refusals.map(([status, refusal]) => [status, answerFor(refusal)]));
}

/**
 * The answers of refusals at one address; a page shows them as pages too.
 *
 * @throws Error when a status has no meaning here
 */
export function refusalsAt(statuses: number[], isPage: boolean): Schema {
  const answers = [...new Set(statuses)].map((status) => {
    const refusal = REFUSALS[status];
    if (!refusal) throw new Error(`a route describes the status ${status}, which no refusal has`);
    return [status, isPage ? answerFor(refusal, { 'text/html': {} }) : { $ref: `#/components/responses/${status}` }];
  });
  return Object.fromEntries(answers);
}

function answerFor({ description, headers = [] }: Refusal, otherwise: Schema = {}): Schema {
  return {
    description,
    headers: Object.fromEntries(['X-Request-Id', ...headers].map((name) => [name, { schema: { type: 'string' } }])),
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } }, ...otherwise },
  };
}
