import type { ApiExamples } from '../platform/http/api-route.js';
import type { Route } from '../routes/declared-routes.js';
import type { RegisteredGrant } from '../token/grant-registry.js';
import type { TokenRouteOptions } from '../token/token-response.js';
import { grantBodies, grantExamples } from './grant-schemas.js';
import {
  type MediaExamples,
  mediaExamples,
  type ObjectSchema,
  objectExamples,
  oneOf,
  patchOf,
  type Schema,
  schemaOf,
} from './schemas.js';

export const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const MERGE_PATCH_TYPE = 'application/merge-patch+json';
const BEGINS_WITH_BRACE = '^\\s*\\{';

type Media = MediaExamples & { schema: Schema };

/** JSON under a label by which a reader of the document does not parse the body (protocol §2.4). */
const UNPARSED_JSON: Schema = {
  title: 'JSON as text',
  description: 'The same JSON under another Content-Type.',
  type: 'string',
  contentMediaType: JSON_TYPE,
  pattern: BEGINS_WITH_BRACE,
};
/** JSON that is labelled as a form, as `curl -d` sends it. Parsed as a form, one of its names begins with a brace. */
const JSON_LABELLED_AS_FORM: Schema = {
  title: 'JSON labelled as a form',
  description: 'The same JSON under the Content-Type of forms, as curl -d sends it.',
  anyOf: [
    { type: 'string', pattern: BEGINS_WITH_BRACE },
    { type: 'object', not: { propertyNames: { not: { pattern: BEGINS_WITH_BRACE } } } },
  ],
};

export function requestBody({ method, description }: Route): Schema {
  const classes = [description.body ?? []].flat();
  const formats = description.bodyFormats ?? ['json'];
  const isPatch = method === 'patch';
  const schemas = classes.map(isPatch ? patchOf : schemaOf);
  const media = { schema: oneOf(schemas), ...bodyExamples(schemas, description.bodyExamples) };
  const required = isPatch || isAnyRequired(media.schema);
  if (!formats.includes('json')) return { required, content: { [FORM_TYPE]: media } };
  return {
    required,
    content: {
      ...(isPatch && { [MERGE_PATCH_TYPE]: media }),
      ...contents(media, formats.includes('form') ? media : undefined),
    },
  };
}

/** The examples of a body. If the body has one of several forms, their titles begin with the `grant_type`. */
function bodyExamples(schemas: ObjectSchema[], examples?: ApiExamples): MediaExamples {
  const entries = schemas.flatMap((schema) =>
    [...objectExamples(schema, examples, 'required')].map(([title, value]): [string, unknown] => {
      const { grant_type } = value as { grant_type?: string };
      return [schemas.length > 1 ? `${grant_type}: ${title}` : title, value];
    }),
  );
  return mediaExamples(new Map(entries));
}

export function grantRequestBody(token: TokenRouteOptions, grants: RegisteredGrant[]): Schema {
  const mediaFor = (offered: RegisteredGrant[]) => ({
    schema: grantBodies(offered, token),
    ...grantExamples(offered, token),
  });
  const withForm = grants.filter(({ form }) => form);
  return { required: true, content: contents(mediaFor(grants), withForm.length > 0 ? mediaFor(withForm) : undefined) };
}

/** The service reads JSON under each Content-Type. It also reads a form if `form` describes one. */
function contents(json: Media, form: Media | undefined): Schema {
  const [first] = Object.values(json.examples ?? {});
  const value = first ? first.value : json.example;
  const text = value === undefined ? {} : { example: JSON.stringify(value) };
  return {
    [JSON_TYPE]: json,
    [FORM_TYPE]: form
      ? { ...form, schema: { anyOf: [form.schema, JSON_LABELLED_AS_FORM] } }
      : { schema: JSON_LABELLED_AS_FORM, ...text },
    'text/plain': { schema: UNPARSED_JSON, ...text },
    '*/*': { schema: UNPARSED_JSON, ...text },
  };
}

function isAnyRequired({ required, oneOf: alternatives }: Schema): boolean {
  return alternatives !== undefined || (Array.isArray(required) && required.length > 0);
}
