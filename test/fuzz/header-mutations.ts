import { flippedBit } from '../../packages/conformance-kit/src/fuzz/body-mutations.js';
import {
  FUZZ_MARKER,
  hostileName,
  hostileText,
  mutatedText,
} from '../../packages/conformance-kit/src/fuzz/hostile-values.js';
import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';
import { type FuzzRequest, headerOf, setHeader } from './fuzz-request.js';
import { AUTHORIZATIONS, MEANINGFUL } from './header-values.js';
import { forgedToken } from './tokens.js';
import type { CookiePair, World } from './world.js';

/** Sets, changes or repeats a header. Returns a note about the mutation. */
export function mutateHeader(request: FuzzRequest, random: Random): string {
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
    setHeader(request, name, random.pick(MEANINGFUL[name] ?? ['']));
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
export function mutateAuthorization(request: FuzzRequest, world: World, random: Random): string {
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
export function mutateCookies(request: FuzzRequest, world: World, random: Random): string {
  const own = world.pairs.pick(random) ?? { id: '01890000-0000-7000-8000-000000000000', secret: '0'.repeat(64) };
  const other = world.pairs.pick(random) ?? own;
  const line = ({ id, secret }: CookiePair) => `__svc_cid=${id}; __svc_cst=${secret}`;
  const flippedText = (text: string) => flippedBit(Buffer.from(text), random).toString('latin1');
  const mutations: Record<string, () => string> = {
    "another's id": () => line({ id: other.id, secret: own.secret }),
    'id flipped': () => line({ id: flippedText(own.id), secret: own.secret }),
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
