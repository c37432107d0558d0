import { formOf, jsonOf, mutateBytes, mutateFields } from '../../packages/conformance-kit/src/fuzz/body-mutations.js';
import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';
import { type FuzzRequest, setHeader } from './fuzz-request.js';
import { mutateAuthorization, mutateCookies, mutateHeader } from './header-mutations.js';
import type { Operation } from './operations.js';
import { mutatedPath, strangeQuery } from './target-mutations.js';
import { type Draft, validRequest } from './valid-request.js';
import type { World } from './world.js';

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'M-SEARCH',
  'CONNECT',
  'get',
  'FOO',
  'POST ',
  'PRI',
  '',
];
/** The distribution of the number of mutations. A quarter of the requests stay valid. */
const MUTATION_COUNTS = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 5];
const AREAS = {
  fields: 10,
  bytes: 3,
  query: 3,
  path: 3,
  method: 1,
  header: 4,
  authorization: 3,
  cookies: 2,
  written: 1,
};

/** A valid request with a random number of mutations. */
export function mutatedRequest(operation: Operation, world: World, random: Random): FuzzRequest {
  const draft = validRequest(operation, world, random);
  const { request } = draft;
  const areas = Array.from({ length: random.pick(MUTATION_COUNTS) }, () => random.weighted(AREAS));
  const afterSerialization: (() => void)[] = [];
  for (const area of areas) mutate(area, draft, world, random, afterSerialization);
  request.target = draft.path + (draft.query.length > 0 ? `?${formOf(draft.query, random)}` : '');
  if (draft.fields) {
    const isForm = draft.mediaType === 'application/x-www-form-urlencoded';
    request.body = Buffer.from((isForm ? formOf : jsonOf)(draft.fields, random));
  }
  for (const act of afterSerialization) act();
  return request;
}

function mutate(
  area: keyof typeof AREAS,
  draft: Draft,
  world: World,
  random: Random,
  afterSerialization: (() => void)[],
): void {
  const { request } = draft;
  const note = (text: string) => void request.notes.push(text);
  if (area === 'fields' && draft.fields) note(mutateFields(draft.fields, random));
  else if (area === 'bytes' && draft.fields) {
    afterSerialization.push(() => {
      const [body, what] = mutateBytes(request.body, random);
      request.body = body;
      note(what);
    });
  } else if (area === 'query') {
    if (random.chance(0.7)) note(`query: ${mutateFields(draft.query, random)}`);
    else
      afterSerialization.push(() => {
        request.target += strangeQuery(random);
        note('query: strange');
      });
  } else if (area === 'path') {
    const [path, what] = mutatedPath(draft.path, random);
    draft.path = path;
    note(what);
  } else if (area === 'method') {
    request.method = random.pick(METHODS);
    note('method');
  } else if (area === 'authorization') note(mutateAuthorization(request, world, random));
  else if (area === 'cookies') note(mutateCookies(request, world, random));
  else if (area === 'written' && draft.fields) {
    draft.mediaType = random.pick(['application/json', 'application/x-www-form-urlencoded']);
    setHeader(request, 'Content-Type', draft.mediaType);
    note('another media type');
  } else note(mutateHeader(request, random));
}
