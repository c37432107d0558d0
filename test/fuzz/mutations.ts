import { formOf, jsonOf, mutateBytes, mutateFields } from '../../src/testing/fuzz/body-mutations.js';
import type { Random } from '../../src/testing/fuzz/random.js';
import { type FuzzRequest, setHeader } from './fuzz-request.js';
import { mutateAuthorization, mutateCookies, mutateHeader } from './header-mutations.js';
import type { Operation } from './operations.js';
import { type Draft, rightRequest } from './right-request.js';
import { mutatedPath, strangeQuery } from './target-mutations.js';
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
/** How many things are wrong with a request: a quarter of them are right. */
const FAULTS = [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 5];
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

/** The request of a number: made rightly, then changed in a few places. */
export function mutatedRequest(operation: Operation, world: World, random: Random): FuzzRequest {
  const draft = rightRequest(operation, world, random);
  const { request } = draft;
  const faults = Array.from({ length: random.pick(FAULTS) }, () => random.weighted(AREAS));
  const late: (() => void)[] = [];
  for (const area of faults) mutate(area, draft, world, random, late);
  request.target = draft.path + (draft.query.length > 0 ? `?${formOf(draft.query, random)}` : '');
  if (draft.fields) {
    const isForm = draft.mediaType === 'application/x-www-form-urlencoded';
    request.body = Buffer.from((isForm ? formOf : jsonOf)(draft.fields, random));
  }
  for (const act of late) act();
  return request;
}

function mutate(area: keyof typeof AREAS, draft: Draft, world: World, random: Random, late: (() => void)[]): void {
  const { request } = draft;
  const note = (text: string) => void request.notes.push(text);
  if (area === 'fields' && draft.fields) note(mutateFields(draft.fields, random));
  else if (area === 'bytes' && draft.fields) {
    late.push(() => {
      const [body, what] = mutateBytes(request.body, random);
      request.body = body;
      note(what);
    });
  } else if (area === 'query') {
    if (random.chance(0.7)) note(`query: ${mutateFields(draft.query, random)}`);
    else
      late.push(() => {
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
    note('written as the other');
  } else note(mutateHeader(request, random));
}
