import { applyDecorators, type Type } from '@nestjs/common';
import { IsArray, IsBoolean } from 'class-validator';
import { MAX_PAGE_ENTRIES } from '../../../oauth/pages.js';
import { ApiProperty, type ApiRouteDescription, apiPropertyOf } from '../../../platform/http/api-route.js';
import { Nested } from '../../../platform/validation/validation.js';
import { type EntryKind, listOf, nounOf } from '../../../registry/entries/entry-kind.js';

// Fields of the responses of all lists.
export const ApiFromFile = () =>
  applyDecorators(IsBoolean(), ApiProperty('Whether a registry file brought the entry.', false));

export const ApiEntries = (type: () => Type<object>) =>
  applyDecorators(
    IsArray(),
    Nested(type, { each: true }),
    ApiProperty('The entries of the page, in the order of their keys.'),
  );

const IF_MATCH = 'With `If-Match` and an `ETag`, an entry that has changed since gets 412.';

const responseHeaders = { ETag: { description: 'Names the state of the entry, for `If-Match`.', example: '"42"' } };
const requestHeaders = {
  'If-Match': {
    description: 'The `ETag` of the state that the request changes. If omitted, any state.',
    example: '"42"',
  },
};

interface EntryTexts {
  query: Type<object>;
  page: Type<object>;
  response: Type<object>;
  /** What a deletion does besides. */
  deletion?: string;
}

/** The descriptions of the routes of a list (protocol §9.1). */
export function entryRoutes(kind: EntryKind, texts: EntryTexts) {
  const { query, page, response, deletion = '' } = texts;
  const { entry: body } = kind;
  const [noun, list] = [nounOf(kind), listOf(kind)];
  const pathParameters = { key: apiPropertyOf(response, kind.key.field) };
  const CONFLICT = '409 conflict';
  const CHANGED_SINCE = '412 precondition_failed';
  return {
    list: {
      summary: `List ${list}, at most ${MAX_PAGE_ENTRIES} at a time`,
      description: `Returns a page of the ${list}. Follow \`next_cursor\` until it is absent.`,
      query,
      response: page,
    },
    create: {
      summary: `Create one of the ${list}`,
      description: 'Adds an entry. The process that responds uses it at once, the others within seconds.',
      body,
      response,
      responseHeaders,
      errors: [CONFLICT],
    },
    read: {
      summary: `Get one of the ${list}`,
      description: `Returns the ${noun}, without its secret. The header \`ETag\` names its present state.`,
      pathParameters,
      response,
      responseHeaders,
    },
    put: {
      summary: `Create or replace one of the ${list}`,
      description: `Gives the entry the fields of the body, and creates it if there is none. ${IF_MATCH}`,
      pathParameters,
      requestHeaders,
      body,
      response,
      responseHeaders,
      mayCreate: true,
      errors: [CONFLICT, CHANGED_SINCE],
    },
    change: {
      summary: `Change one of the ${list} by a merge patch (RFC 7396)`,
      description: `Changes the fields that the body has. \`null\` removes a field. Other fields keep their value. ${IF_MATCH}`,
      pathParameters,
      requestHeaders,
      body,
      response,
      responseHeaders,
      errors: kind.fileKey ? [CONFLICT, CHANGED_SINCE] : [CHANGED_SINCE],
    },
    delete: {
      summary: `Delete one of the ${list}`,
      description: `Deletes the ${noun}${deletion}.`,
      pathParameters,
      requestHeaders,
      errors: [CHANGED_SINCE],
    },
  } satisfies Record<string, ApiRouteDescription>;
}
