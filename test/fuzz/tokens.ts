import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { FUZZ_MARKER, flipped, hostileText } from './hostile-values.js';
import type { Random } from './random.js';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const ATTACKER_JWK = publicKey.export({ format: 'jwk' });
const ATTACKER_PEM = publicKey.export({ format: 'pem', type: 'spki' });

interface Parts {
  region: string;
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
  segments: string[];
}

type Forgery = (parts: Parts, random: Random) => string;

/** Header fields that make vulnerable verifiers use the attacker's key or no key. */
const HEADERS: Record<string, unknown>[] = [
  { jwk: ATTACKER_JWK },
  { jku: 'https://evil.example/jwks.json' },
  { crit: ['exp'], exp: 1 },
  { kid: '../../../../dev/null' },
  { kid: "' OR 1=1" },
  { kid: ['a'] },
  { kid: '' },
  { kid: undefined },
  { alg: 'RS256' },
  { typ: 'JWT' },
  { typ: 'application/at+jwt' },
  { __proto__x: 1, zip: 'DEF' },
];

const CLAIMS: Record<string, unknown>[] = [
  { exp: 9_999_999_999 },
  { exp: '9999999999' },
  { exp: null },
  { sub: '__proto__' },
  { aud: ['customer-api', 'agent-api'] },
  { aud: 'agent-api', scope: 'customers:own' },
  { iss: 'https://evil.example' },
  { iat: -1 },
  { organization_id: FUZZ_MARKER },
];

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signedByAttacker(region: string, header: object, claims: object): string {
  const signed = `${encoded(header)}.${encoded(claims)}`;
  const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${region}:${signed}.${signature.toString('base64url')}`;
}

const FORGERIES: Forgery[] = [
  ({ region, header, claims }) => signedByAttacker(region, header, claims),
  ({ region, header, claims }, random) => signedByAttacker(region, { ...header, ...random.pick(HEADERS) }, claims),
  ({ region, header, claims }, random) => signedByAttacker(region, header, { ...claims, ...random.pick(CLAIMS) }),
  ({ region, header, claims, segments }, random) =>
    `${region}:${encoded({ ...header, ...random.pick(HEADERS), x: 1 })}.${encoded(claims)}.${segments[2]}`,
  ({ region, claims, segments }, random) =>
    `${region}:${segments[0]}.${encoded({ ...claims, ...random.pick(CLAIMS), x: 1 })}.${segments[2]}`,
  ({ region, header, claims }, random) =>
    `${region}:${encoded({ ...header, alg: random.pick(['none', 'None', 'nOnE', '']) })}.${encoded(claims)}.`,
  ({ region, header, claims }) => {
    const signed = `${encoded({ ...header, alg: 'HS256' })}.${encoded(claims)}`;
    return `${region}:${signed}.${createHmac('sha256', ATTACKER_PEM).update(signed).digest('base64url')}`;
  },
  ({ region, segments }, random) =>
    `${random.pick(['%3A', '%3a', '', 'xx:', ' ', '::', '%253A'])}${region}%3A${segments.join('.')}`,
  ({ region, segments: [header, claims, signature] }, random) =>
    `${region}:${random
      .pick([
        [claims, header, signature],
        [header, signature, claims],
        [header, claims],
        [header, claims, signature, signature],
        [header, claims, ''],
        ['', '', ''],
        [header, claims, `${signature}=`],
        [header, claims, 'A'.repeat(86)],
        [header, encoded([]), signature],
        [header, encoded(null), signature],
      ])
      .join('.')}`,
];

/** A text like a token that the service has not issued. */
export function forgedToken(token: string, random: Random): string {
  if (random.chance(0.1)) return hostileText(random).replaceAll(/\s/g, '') || FUZZ_MARKER;
  const forged = random.chance(0.3) ? damaged(token, random) : random.pick(FORGERIES)(partsOf(token), random);
  return forged === token ? `${token}A` : forged;
}

function damaged(token: string, random: Random): string {
  const at = random.below(token.length);
  const way = random.weighted({ flip: 6, cut: 2, drop: 2, case: 1, double: 1 });
  if (way === 'flip') return token.slice(0, at) + flipped(token[at] as string, random) + token.slice(at + 1);
  if (way === 'cut') return token.slice(0, at);
  if (way === 'drop') return token.slice(0, at) + token.slice(at + 1);
  return way === 'case' ? token.toUpperCase() : token + token;
}

function partsOf(token: string): Parts {
  const [region = '', ...rest] = token.split(':');
  const segments = rest.join(':').split('.');
  const [header = {}, claims = {}] = segments
    .slice(0, 2)
    .map((segment) => JSON.parse(Buffer.from(segment, 'base64url').toString()));
  return { region, header, claims, segments };
}
