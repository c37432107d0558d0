import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Assertions } from '../../src/grants/jwt-bearer/assertions.js';
import { IssuerKeys } from '../../src/grants/jwt-bearer/issuer-keys.js';
import type { JwtBearerSettings } from '../../src/grants/jwt-bearer/jwt-bearer.settings.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { Clock } from '../../src/platform/clock.js';
import { Configuration } from '../../src/platform/configuration/configuration.js';
import { AUTH_URL, SIGN_IN, SignInSystem } from '../support/assertion-issuer.js';
import { ACME } from '../support/test-registry.js';

const clock = new Clock();
const assertions = new Assertions(new IssuerKeys(clock), clock, Object.assign(new Configuration(), { AUTH_URL }));
const use = { clientId: SIGN_IN, organizationId: ACME };
let acme: SignInSystem;
let settings: JwtBearerSettings;
let good: string;
beforeAll(async () => {
  acme = await SignInSystem.start();
  const { issuer } = acme.settings();
  settings = { issuer, jwks: acme.jwks } as JwtBearerSettings;
  good = await acme.assert(clock.now(), { sub: 'user-1', jti: 'assertion-1' });
});
afterAll(() => acme.issuer.goAway());

/** The text of a caller: either the very user that was signed, or a refusal of ours. */
async function expectRefusal(text: string): Promise<void> {
  const answer = await assertions.verify(text, settings, use).catch((error: unknown) => error);
  expect(answer).toBeInstanceOf(OAuthError);
  expect(answer).toMatchObject({ code: 'invalid_grant', status: 400, hint: undefined });
}

describe('an assertion', () => {
  it('is verified as it was signed', async () => {
    expect(await assertions.verify(good, settings, use)).toMatchObject({ userId: 'user-1', jti: 'assertion-1' });
  });

  it('with any one character replaced, added or taken away never verifies', () =>
    fc.assert(
      fc.asyncProperty(
        fc.nat(good.length - 1),
        fc.constantFrom('replace', 'add', 'take away'),
        fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \n\u0000é'),
        async (at, how, character) => {
          const middle = how === 'take away' ? '' : character;
          const mutated = good.slice(0, at) + middle + good.slice(how === 'add' ? at : at + 1);
          fc.pre(mutated !== good);
          await expectRefusal(mutated);
        },
      ),
      { numRuns: 2_000 },
    ));

  it('with another header or other claims under its signature never verifies', () =>
    fc.assert(
      fc.asyncProperty(fc.json(), fc.constantFrom(0, 1), async (json, which) => {
        const segments = good.split('.');
        segments[which] = Buffer.from(json).toString('base64url');
        await expectRefusal(segments.join('.'));
      }),
      { numRuns: 500 },
    ));

  it('that is any text is refused and never a fault', () =>
    fc.assert(fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary' }), fc.base64String()), expectRefusal)));

  it('says who its user is by sub alone, whatever other claims there are', () =>
    fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (more) => {
        const fixed = { sub: 'user-1', jti: 'x', client_id: SIGN_IN, organization_id: ACME };
        const signed = await acme.assert(clock.now(), {
          ...{ ...more, ...fixed, iss: acme.issuer.issuer, aud: AUTH_URL, nbf: undefined, iat: undefined },
          exp: clock.seconds() + 60,
        });
        expect((await assertions.verify(signed, settings, use)).userId).toBe('user-1');
      }),
    ));

  it('of any sub names that user, byte for byte, or nobody', () =>
    fc.assert(
      fc.asyncProperty(fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.jsonValue()), async (sub) => {
        const signed = await acme.assert(clock.now(), { sub });
        const proven = await assertions.verify(signed, settings, use).catch((error: OAuthError) => error);
        if (proven instanceof OAuthError) expect(proven.code).toBe('invalid_grant');
        else expect(proven.userId).toBe(sub);
      }),
      { numRuns: 500 },
    ));
});
