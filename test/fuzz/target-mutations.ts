import { FUZZ_MARKER, hostileText, wellFormed } from '../../packages/conformance-kit/src/fuzz/hostile-values.js';
import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';

const SEGMENTS = [
  '..',
  '.',
  '',
  '%2e%2e',
  '%2f',
  '%5c',
  '%00',
  '%',
  '%zz',
  '%c0%af',
  '%E0%A4%A',
  ';x=1',
  'é',
  '\\',
  '__proto__',
  '%252e%252e',
  '*',
  '**',
  ':key',
  '(.*)',
];

/** Mutates a path. Returns the new path and a note about the mutation. */
export function mutatedPath(path: string, random: Random): [path: string, note: string] {
  const segments = path.split('/');
  if (segments.length < 2) segments.unshift('');
  const at = 1 + random.below(segments.length - 1);
  const changed = (segment: string) => segments.with(at, segment).join('/');
  const original = segments[at] ?? '';
  const mutations: Record<string, () => string> = {
    'a segment replaced': () => changed(random.pick(SEGMENTS)),
    'a hostile segment': () => changed(encodeURIComponent(wellFormed(hostileText(random)))),
    'a segment not encoded': () => changed(hostileText(random).replaceAll(/[\s?#]/g, '')),
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
    'the name of a surface': () => random.pick(['/public', '/management', '/../management']) + path,
  };
  const note = random.pick(Object.keys(mutations));
  return [mutations[note]?.() ?? path, `path: ${note}`];
}

const QUERIES = [
  '?',
  '??',
  '?%',
  '?a[b]=1',
  '?__proto__[x]=1',
  '?constructor[prototype][x]=1',
  '?a&a&a',
  '?=',
  '?a=%zz',
  '?access_token=x',
  '#fragment',
  `?${'a=1&'.repeat(1_200)}`,
  `?after=${FUZZ_MARKER}`,
];

export function strangeQuery(random: Random): string {
  return random.pick(QUERIES);
}
