import { flippedBit, formOf, jsonOf, mutateBytes, mutateFields } from './body-mutations.js';
import { type FuzzRequest, headerOf, setHeader } from './fuzz-request.js';
import { FUZZ_MARKER, hostileName, hostileText, mutatedText, wellFormed } from './hostile-values.js';
import type { Operation } from './operations.js';
import type { Random } from './random.js';
import { forgedToken } from './tokens.js';
import { type Draft, validRequest } from './valid-request.js';
import type { CookiePair, World } from './world.js';

const SEGMENTS = [
  ...['..', '.', '', '%2e%2e', '%2f', '%5c', '%00', '%', '%zz', '%c0%af', '%252e%252e', '\\', ';x=1'],
  ...['é', '__proto__', '*', ':key', '(.*)'],
];

function mutatedPath(path: string, random: Random): [path: string, note: string] {
  const segments = path.split('/');
  if (segments.length < 2) segments.unshift('');
  const at = 1 + random.below(segments.length - 1);
  const changed = (segment: string) => segments.with(at, segment).join('/');
  const original = segments[at] ?? '';
  const mutations: Record<string, () => string> = {
    'a segment replaced': () => changed(random.pick(SEGMENTS)),
    'a hostile segment': () => changed(encodeURIComponent(wellFormed(hostileText(random)))),
    'a segment not encoded': () => changed(hostileText(random).replaceAll(/[\s?#]/g, '+')),
    'a segment added': () => segments.toSpliced(at, 0, random.pick(SEGMENTS)).join('/'),
    'a segment dropped': () => segments.toSpliced(at, 1).join('/') || '/',
    'a suffix': () => path + random.pick(['/', '//', '.json', ';a', '%20', '%00', '/.', '/..', '%2f']),
    'another case': () =>
      changed(random.chance(0.5) ? original.toUpperCase() : original.replace(/^\w/, (first) => first.toUpperCase())),
    'an encoded letter': () => changed(original.replace(/\w/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)),
    'encoded slashes': () => `/${path.slice(1).replaceAll('/', random.pick(['%2f', '%2F', '%252f', '\\']))}`,
    'dot segments': () => random.pick([`/x/..${path}`, `/.${path}`, `${path}/x/..`, `/%2e${path}`, `/..${path}`]),
    'absolute form': () =>
      random.pick(['http://auth.example', 'https://evil.example:1', 'http://user:pw@h', 'http://[::1]']) + path,
    'of another scheme': () => random.pick(['file:', 'javascript:', 'http:/', '//evil.example']) + path,
    'no path': () => random.pick(['*', '?', '#', '.', '%', 'auth.example:443', '']),
    long: () => `${path}/${FUZZ_MARKER.repeat(random.pick([50, 500, 1_400, 1_900, 4_000]))}`,
    'the name of a listener': () => random.pick(['/public', '/management', '/../management']) + path,
  };
  const note = random.pick(Object.keys(mutations));
  return [mutations[note]?.() ?? path, `path: ${note}`];
}

const QUERIES = [
  ...['?', '??', '?%', '?=', '?a=%zz', '?a&a&a', '?a[b]=1', '?__proto__[x]=1', '?access_token=x', '#fragment'],
  ...[`?${'a=1&'.repeat(1_200)}`, `?after=${FUZZ_MARKER}`],
];

/** Values with a meaning for servers or proxies, by header name. Half of them are mutated further. */
const MEANINGFUL: Record<string, string[]> = {
  Origin: ['null', 'https://acme.example', 'https://rival.example', 'https://acme.example.evil.example', ''],
  'Content-Type': [
    'application/json',
    'application/x-www-form-urlencoded',
    'application/x-www-form-urlencoded; charset=utf-16',
    'multipart/form-data; boundary=x',
    'a'.repeat(4_000),
  ],
  'X-Request-Id': ['', 'fz-valid-request-id', 'x'.repeat(65), '../../etc/passwd', '<fz>', '__proto__'],
  traceparent: ['00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', '00-x'],
  tracestate: ['a=b', 'a'.repeat(600)],
  'X-Forwarded-For': ['1.2.3.4', '1.2.3.4, 5.6.7.8, 9.9.9.9', '::ffff:1.2.3.4', '[::1]:80', 'fe80::1%eth0'],
  'X-Forwarded-Host': ['evil.example'],
  'X-Forwarded-Proto': ['http', 'javascript'],
  Forwarded: ['for=1.2.3.4;host=evil.example'],
  'X-HTTP-Method-Override': ['DELETE'],
  'X-Original-URL': ['/admin/clients'],
  Accept: ['text/html', 'application/json', 'text/html;q=0, */*', ';;;', `${'a/b,'.repeat(600)}`],
  'Accept-Encoding': ['gzip, br', 'identity;q=0'],
  'Content-Encoding': ['gzip', 'identity', 'br, gzip', ''],
  Range: ['bytes=0-0', 'bytes=9-1,2-3'],
  'If-None-Match': ['*', '"x"'],
  'Access-Control-Request-Method': ['POST', 'TRACE', ''],
  'Access-Control-Request-Headers': ['authorization', 'x-evil', '*'],
  Host: ['', 'evil.example', 'auth.example:99999', 'a b', '[::', `${FUZZ_MARKER}.example`],
  Connection: ['close', 'keep-alive, X-Request-Id', 'upgrade', 'Authorization'],
  Upgrade: ['websocket', 'h2c'],
  Expect: ['100-continue', '200-ok'],
  Cookie: ['', ';', '=', '__svc_cid=', '__svc_cid=j:{"a":1}; __svc_cst=j:[]', '__Host-session=s%3A%.', 'é=ü'],
};

/** Values of `Authorization` without a valid bearer token. */
const AUTHORIZATIONS = [
  ...['', 'Bearer', 'Bearer  x', 'bearer x', 'Bearer a b', 'Bearer a, Bearer b', `Bearer ${'a'.repeat(7_000)}`],
  ...['Basic', 'Basic !!!', 'Basic Og==', `Basic ${Buffer.from('a\0b:%zz').toString('base64')}`],
  ...['Digest username="a"', 'Negotiate x', '__proto__ x'],
];

/** Sets, changes or repeats a header. Returns a note about the mutation. */
function mutateHeader(request: FuzzRequest, random: Random): string {
  const kind = random.weighted({
    meaningful: 12,
    mutated: 3,
    hostileName: 2,
    many: 1,
    long: 1,
    repeated: 2,
    dropped: 1,
  });
  const existing = random.pick(request.headers)?.[0] ?? 'Host';
  if (kind === 'meaningful') {
    const name = random.pick(Object.keys(MEANINGFUL));
    const value = random.pick(MEANINGFUL[name] ?? ['']);
    setHeader(request, name, random.chance(0.5) ? value : mutatedText(value, random));
    return `header ${name}`;
  }
  if (kind === 'mutated') {
    setHeader(request, existing, mutatedText(headerOf(request, existing.toLowerCase()) ?? '', random));
    if (existing === 'Authorization') request.forgedBearer = false;
  } else if (kind === 'hostileName') request.headers.push([hostileName(random), hostileText(random)]);
  else if (kind === 'many')
    for (let each = 0; each < random.pick([90, 600, 2_500]); each++) request.headers.push([`x${each}`, 'y']);
  else if (kind === 'long') request.headers.push(['X-Long', FUZZ_MARKER.repeat(random.pick([900, 2_100, 9_000]))]);
  else if (kind === 'repeated')
    request.headers.push([
      existing,
      random.chance(0.5) ? (headerOf(request, existing.toLowerCase()) ?? '') : hostileText(random),
    ]);
  else request.headers = request.headers.filter(([name]) => name !== existing);
  return `header ${existing} ${kind}`;
}

/** Sends another bearer token, a forged one, or none. Returns a note about the mutation. */
function mutateAuthorization(request: FuzzRequest, world: World, random: Random): string {
  request.forgedBearer = false;
  const kind = random.weighted({ forged: 6, strange: 3, otherKind: 2, otherScheme: 1, none: 1 });
  const token =
    (random.chance(0.5) ? world.customerTokens.pick(random) : undefined) ?? random.pick(Object.values(world.agents));
  if (kind === 'forged') {
    setHeader(request, 'Authorization', `Bearer ${forgedToken(token, random)}`);
    request.forgedBearer = true;
  } else if (kind === 'strange') setHeader(request, 'Authorization', random.pick(AUTHORIZATIONS));
  else if (kind === 'otherKind') setHeader(request, 'Authorization', `Bearer ${token}`);
  else if (kind === 'otherScheme')
    setHeader(request, 'Authorization', `${random.pick(['Basic', 'bearer', 'BEARER', 'Token', 'Bearer:'])} ${token}`);
  else request.headers = request.headers.filter(([name]) => name !== 'Authorization');
  return `authorization: ${kind}`;
}

/** Sends mutated or foreign identity cookies. Returns a note about the mutation. */
function mutateCookies(request: FuzzRequest, world: World, random: Random): string {
  const own = world.pairs.pick(random) ?? { id: '01890000-0000-7000-8000-000000000000', secret: '0'.repeat(112) };
  const other = world.pairs.pick(random) ?? own;
  const line = ({ id, secret }: CookiePair) => `__svc_cid=${id}; __svc_cst=${secret}`;
  const flippedText = (text: string) => flippedBit(Buffer.from(text), random).toString('latin1');
  const mutations: Record<string, () => string> = {
    "another's id": () => line({ id: other.id, secret: own.secret }),
    'id flipped': () => line({ id: flippedText(own.id), secret: own.secret }),
    "another's end": () => line({ id: own.id, secret: `${own.secret.slice(0, 96)}${other.secret.slice(96)}` }),
    'secret flipped': () => line({ id: own.id, secret: flippedText(own.secret) }),
    'in upper case': () => line({ id: own.id.toUpperCase(), secret: own.secret.toUpperCase() }),
    'id alone': () => `__svc_cid=${own.id}`,
    'secret alone': () => `__svc_cst=${own.secret}`,
    'two pairs': () => `${line(own)}; ${line(other)}`,
    'two pairs, mixed': () =>
      `__svc_cid=${own.id}; __svc_cid=${other.id}; __svc_cst=${other.secret}; __svc_cst=${own.secret}`,
    'id twice': () => `__svc_cid=${other.id}; ${line(own)}`,
    'secret cut': () => line({ id: own.id, secret: own.secret.slice(0, random.below(64)) }),
    'secret grown': () => line({ id: own.id, secret: `${own.secret}${random.pick(['0', ' ', '%00', '"'])}` }),
    quoted: () => `__svc_cid="${own.id}"; __svc_cst="${own.secret}"`,
    'other separator': () => line(own).replace('; ', random.pick([',', ';', ' ', ';;', '&', '\t'])),
    'unknown id': () => line({ id: own.id.replace(/.{6}$/, '000000'), secret: own.secret }),
    hostile: () => line({ id: hostileText(random), secret: hostileText(random) }),
    'as prefix': () => `x__svc_cid=${own.id}; x__svc_cst=${own.secret}`,
  };
  const note = random.pick(Object.keys(mutations));
  setHeader(request, 'Cookie', mutations[note]?.() ?? '');
  return `cookies: ${note}`;
}

const METHODS = [
  ...['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY', 'M-SEARCH'],
  ...['CONNECT', 'get', 'FOO', 'POST ', 'PRI', ''],
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
        request.target += random.pick(QUERIES);
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
