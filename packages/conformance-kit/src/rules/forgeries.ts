import { createHmac } from 'node:crypto';
import { exportJWK, exportSPKI, generateKeyPair, importJWK, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import type { GrantRule, GrantSubject } from '../grant-subject.js';
import type { GrantKit } from '../kit.js';
import { parametersOf, withParameter } from '../request.js';

const VERIFY = 'verify it with `JwtProofs`, or with `jwtVerify` of jose, a list of algorithms and the audience';
const DECLARE = 'return forged proofs in `forged`: unsigned, signed with another key, changed';

/** A proof that the extension has not made itself is signed, or a secret of another system. */
export function forgeryRules({ agentScope }: { agentScope?: string | undefined }, { forged }: GrantKit): GrantRule[] {
  if (forged) return [FORGED_JWT, refuses(forged)];
  return agentScope === undefined ? [FORGED_JWT, DECLARES_FORGED] : [FORGED_JWT];
}

const DECLARES_FORGED: GrantRule = {
  title: 'has a test that declares `forged`, unless a route creates the proof, or it is a JWT',
  async check(subject) {
    const { sent, isOfRoute } = await subject.proof();
    const isSigned = Object.values(parametersOf(sent)).some(isJwt);
    if (!isOfRoute && !isSigned && subject.kit.pending === undefined) throw new Error(DECLARE);
  },
};

const refuses = (forged: NonNullable<GrantKit['forged']>): GrantRule => ({
  title: 'refuses each forged proof of the test',
  async check(subject) {
    const sent = await subject.create();
    for (const own of await forged({ ...sent.body }, subject.environment)) {
      const what = `the forged proof ${JSON.stringify(own)}`;
      await subject.expectNoToken(
        { ...sent, body: { ...sent.body, ...own } },
        what,
        'check the proof before you use what it says',
      );
    }
  },
});

const FORGED_JWT: GrantRule = {
  title: 'refuses a JWT that is unsigned, changed, or signed with another key',
  async check(subject) {
    for (const name of subject.ownParameters) {
      const { [name]: sample } = parametersOf(await subject.create());
      if (!isJwt(sample)) continue;
      for (const [what, forge] of FORGERIES) {
        const sent = await subject.create();
        for (const value of await forge(`${sent.body?.[name]}`, subject))
          await subject.expectNoToken(withParameter(sent, name, value), `${name}: ${what}`, VERIFY);
      }
      await subject.expectSuccess(await subject.create()); // the forgeries have not spoilt a cache of keys
    }
  },
};

type Forge = (jwt: string, subject: GrantSubject) => string[] | Promise<string[]>;

const FORGERIES: [what: string, forge: Forge][] = [
  ['without its signature', (jwt) => [`${signedPart(jwt)}.`]],
  ['with another signature', (jwt) => [`${signedPart(jwt)}.${'A'.repeat(jwt.split('.')[2]?.length ?? 0)}`]],
  [
    'with the algorithm none',
    (jwt) => ['none', 'None'].map((alg) => `${part({ ...headerOf(jwt), alg })}.${jwt.split('.')[1]}.`),
  ],
  ['with a changed claim', (jwt) => changedClaims(jwt).map((claims) => withClaims(jwt, claims))],
  ['signed with another key', async (jwt) => [await resigned(jwt)]],
  ['signed with another key in its own header', async (jwt) => [await resigned(jwt, true)]],
  ['signed by HMAC with the public key', async (jwt, { kit }) => signedWithPublicKeys(jwt, kit)],
];

/** Whether a value is a JWT: three parts in base64url, of which the first is an object with `alg`. */
export function isJwt(value: unknown): boolean {
  if (typeof value !== 'string' || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(value)) return false;
  try {
    return typeof headerOf(value).alg === 'string';
  } catch {
    return false;
  }
}

const signedPart = (jwt: string): string => jwt.split('.').slice(0, 2).join('.');
const decoded = (text = ''): Record<string, unknown> => JSON.parse(Buffer.from(text, 'base64url').toString());
const headerOf = (jwt: string) => decoded(jwt.split('.')[0]) as unknown as JWTHeaderParameters;
const claimsOf = (jwt: string) => decoded(jwt.split('.')[1]);
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const withClaims = (jwt: string, claims: object): string =>
  [jwt.split('.')[0], part(claims), jwt.split('.')[2]].join('.');

/** The claims with a later expiry, and with another value of each text. */
function changedClaims(jwt: string): object[] {
  const claims = claimsOf(jwt);
  const names = Object.keys(claims).filter((name) => typeof claims[name] === 'string');
  return [
    { ...claims, exp: Number(claims.exp ?? 0) + 1 },
    ...names.map((name) => ({ ...claims, [name]: `${claims[name]}x` })),
  ];
}

async function resigned(jwt: string, namesKey = false): Promise<string> {
  const header = headerOf(jwt);
  const signing = new SignJWT(claimsOf(jwt));
  if (header.alg.startsWith('HS')) return signing.setProtectedHeader(header).sign(Buffer.alloc(64, 'another key'));
  const { privateKey, publicKey } = await generateKeyPair(header.alg);
  const named = namesKey ? { jwk: await exportJWK(publicKey) } : {};
  return signing.setProtectedHeader({ ...header, ...named }).sign(privateKey);
}

/** JWTs whose HMAC has a public key of the settings as its key, as JSON and as PEM. */
async function signedWithPublicKeys(jwt: string, { settings = {} }: GrantKit): Promise<string[]> {
  const keys: string[] = [];
  const visit = async (value: unknown): Promise<void> => {
    if (typeof value === 'string' && value.includes('BEGIN PUBLIC KEY')) keys.push(value);
    if (typeof value !== 'object' || value === null) return;
    if ('kty' in value) keys.push(JSON.stringify(value), await pemOf(value as JWK, headerOf(jwt).alg));
    for (const each of Object.values(value)) await visit(each);
  };
  await visit(settings);
  const unsigned = `${part({ ...headerOf(jwt), alg: 'HS256' })}.${jwt.split('.')[1]}`;
  return keys.map((key) => `${unsigned}.${createHmac('sha256', key).update(unsigned).digest('base64url')}`);
}

async function pemOf(jwk: JWK, alg: string): Promise<string> {
  const key = await importJWK(jwk, alg).catch(() => undefined);
  return key && 'type' in key && key.type === 'public' ? exportSPKI(key) : 'no public key';
}
