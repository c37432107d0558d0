import {
  base64url,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  type JWTHeaderParameters,
  SignJWT,
} from 'jose';
import type { GrantRule } from '../grant-subject.js';
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
  title: 'refuses a JWT that is unsigned, or signed with another key',
  async check(subject) {
    for (const name of subject.ownParameters) {
      const { [name]: sample } = parametersOf(await subject.create());
      if (!isJwt(sample)) continue;
      for (const [what, forge] of Object.entries(FORGERIES)) {
        const sent = await subject.create();
        const forged = withParameter(sent, name, await forge(`${sent.body?.[name]}`));
        await subject.expectNoToken(forged, `${name}: ${what}`, VERIFY);
      }
      await subject.expectSuccess(await subject.create()); // the forgeries have not spoilt a cache of keys
    }
  },
};

const FORGERIES: Record<string, (jwt: string) => string | Promise<string>> = {
  'without its signature': (jwt) => jwt.replace(/[^.]*$/, ''),
  'with the algorithm none': (jwt) => {
    const header = base64url.encode(JSON.stringify({ ...decodeProtectedHeader(jwt), alg: 'none' }));
    return `${header}.${jwt.split('.')[1]}.`;
  },
  'signed with another key': (jwt) => resigned(jwt),
  'signed with another key in its own header': (jwt) => resigned(jwt, true),
};

/** Whether a value is a JWT with a header and claims in JSON. */
export function isJwt(value: unknown): boolean {
  try {
    return Boolean(decodeJwt(`${value}`)) && typeof decodeProtectedHeader(`${value}`).alg === 'string';
  } catch {
    return false;
  }
}

async function resigned(jwt: string, namesKey = false): Promise<string> {
  const header = decodeProtectedHeader(jwt) as JWTHeaderParameters;
  const signing = new SignJWT(decodeJwt(jwt));
  if (header.alg.startsWith('HS')) return signing.setProtectedHeader(header).sign(Buffer.alloc(64, 'another key'));
  const { privateKey, publicKey } = await generateKeyPair(header.alg);
  const named = namesKey ? { jwk: await exportJWK(publicKey) } : {};
  return signing.setProtectedHeader({ ...header, ...named }).sign(privateKey);
}
