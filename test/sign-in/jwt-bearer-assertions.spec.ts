import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ForeignJwts } from '../../src/oauth/foreign-jwts.js';
import type { JwtIssuer } from '../../src/oauth/jwt-issuer.js';
import { JwtProofs } from '../../src/oauth/jwt-proofs.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { Clock } from '../../src/platform/clock.js';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { randomRuns } from '../nightly.js';
import { AUTH_URL, SIGN_IN, SignInSystem } from '../support/assertion-issuer.js';
import { ACME } from '../support/test-registry.js';

const clock = new Clock();
const configuration = Object.assign(new Configuration(), { AUTH_URL });
const proofs = new JwtProofs(new ForeignJwts(clock, configuration), configuration);
let acme: SignInSystem;
let trusted: JwtIssuer;
let good: string;
beforeAll(async () => {
  acme = await SignInSystem.start();
  const { issuer } = acme.settings();
  trusted = { issuer, jwks: acme.jwks } as JwtIssuer;
  good = await acme.assert(clock.now(), { sub: 'user-1', jti: 'assertion-1' });
});
afterAll(() => acme.issuer.stop());

/** Checks that an assertion is rejected with an error response, and not with an exception of a library. */
async function expectRejected(text: string): Promise<void> {
  const error = await proofs.verify(text, trusted).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OAuthError);
  expect(error).toMatchObject({ code: 'invalid_grant', status: 400 });
}

describe('an assertion', () => {
  it('is rejected with any single character replaced, added or removed', () =>
    fc.assert(
      fc.asyncProperty(
        fc.nat(good.length - 1),
        fc.constantFrom('replace', 'add', 'remove'),
        fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\u0000é'),
        async (at, how, character) => {
          const middle = how === 'remove' ? '' : character;
          const mutated = good.slice(0, at) + middle + good.slice(how === 'add' ? at : at + 1);
          fc.pre(mutated !== good);
          await expectRejected(mutated);
        },
      ),
      randomRuns(2_000),
    ));

  it('is rejected with another header or other claims under the same signature', () =>
    fc.assert(
      fc.asyncProperty(fc.json(), fc.constantFrom(0, 1), async (json, which) => {
        const segments = good.split('.');
        segments[which] = Buffer.from(json).toString('base64url');
        await expectRejected(segments.join('.'));
      }),
      randomRuns(500),
    ));

  it('is rejected with an OAuthError if it is arbitrary text', () =>
    fc.assert(fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), expectRejected)));

  it('identifies its user by sub alone, with any other claims', () =>
    fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (more) => {
        const fixed = { sub: 'user-1', jti: 'x', client_id: SIGN_IN, organization_id: ACME };
        const signed = await acme.assert(clock.now(), {
          ...{ ...more, ...fixed, iss: acme.issuer.issuer, aud: AUTH_URL, nbf: undefined, iat: undefined },
          exp: clock.seconds() + 60,
        });
        expect((await proofs.verify(signed, trusted)).sub).toBe('user-1');
      }),
    ));

  it('either identifies the user with exactly the signed sub, or is rejected', () =>
    fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue()), async (sub) => {
        const signed = await acme.assert(clock.now(), { sub });
        const proven = await proofs.verify(signed, trusted).catch((error: OAuthError) => error);
        if (proven instanceof OAuthError) expect(proven.code).toBe('invalid_grant');
        else expect(proven.sub).toBe(sub);
      }),
      randomRuns(500),
    ));
});
