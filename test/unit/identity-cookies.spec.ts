import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IdentityCookies } from '../../src/identity/identity-cookies.js';
import { Clock } from '../../src/platform/clock.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { randomSecret } from '../../src/platform/secret.js';
import { UUID, uuidv7 } from '../../src/platform/uuid.js';

const SECRET = /^[0-9a-f]{64}$/;
const cookies = cookiesWith();
const { entityId: ID, secret: CST } = credentials();
const other = credentials();
const pair = `__svc_cid=${ID}; __svc_cst=${CST}`;

describe('reading the identity cookies', () => {
  it.each([
    ['as browsers send them', pair],
    ['in the other order', `__svc_cst=${CST}; __svc_cid=${ID}`],
    ['without spaces', pair.replaceAll(' ', '')],
    ['among others', `a=b; ${pair}; c=d`],
    ['in quotes', `__svc_cid="${ID}"; __svc_cst="${CST}"`],
    ['beside names that end like theirs', `x__svc_cid=${other.entityId}; ${pair}; x__svc_cst=${other.secret}`],
    ['beside names that begin like theirs', `__svc_cid2=${other.entityId}; ${pair}; __svc_cst2=${other.secret}`],
    ['after a malformed pair', `__svc_cid=x; __svc_cst=y; ${pair}`],
    ['after an empty pair', `__svc_cid=; __svc_cst=; ${pair}`],
  ])('finds them %s', (_, header) => {
    expect(cookies.read(header)).toEqual({ entityId: ID, secret: CST });
  });

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['the id alone', `__svc_cid=${ID}`],
    ['the secret alone', `__svc_cst=${CST}`],
    ['an empty id', `__svc_cid=; __svc_cst=${CST}`],
    ['an empty secret', `__svc_cid=${ID}; __svc_cst=`],
    ['an id in upper case', `__svc_cid=${ID.toUpperCase()}; __svc_cst=${CST}`],
    ['a secret in upper case', `__svc_cid=${ID}; __svc_cst=${'A'.repeat(64)}`],
    ['an id that is no UUID', `__svc_cid=1; __svc_cst=${CST}`],
    ['a secret of 63 digits', `__svc_cid=${ID}; __svc_cst=${CST.slice(1)}`],
    ['a secret of 65 digits', `__svc_cid=${ID}; __svc_cst=${CST}0`],
    ['JSON cookies', `__svc_cid=j:{"$ne":null}; __svc_cst=j:{"$ne":null}`],
    ['encoded JSON cookies', `__svc_cid=j%3A%22${ID}%22; __svc_cst=j%3A%22${CST}%22`],
    ['signed cookies', `__svc_cid=s:${ID}; __svc_cst=s:${CST}`],
    ['names in upper case', pair.toUpperCase()],
    ['bytes outside ASCII', `__svc_cid=ÿ${ID}; __svc_cst=${CST}`],
    ['a zero byte at the end', `__svc_cid=${ID}\0; __svc_cst=${CST}`],
    ['spaces around the equals sign', `__svc_cid = ${ID}; __svc_cst = ${CST}`],
    ['4 KB of digits', `__svc_cid=${ID}; __svc_cst=${'0'.repeat(4096)}`],
    ['names that end like theirs', `a__svc_cid=${ID}; a__svc_cst=${CST}`],
  ])('finds none in %s', (_, header) => {
    expect(cookies.read(header)).toBeUndefined();
  });

  it.each([
    ['pair by pair', `${pair}; __svc_cid=${other.entityId}; __svc_cst=${other.secret}`],
    ['ids first', `__svc_cid=${ID}; __svc_cid=${other.entityId}; __svc_cst=${CST}; __svc_cst=${other.secret}`],
  ])('takes the first id with the first secret where both come twice, %s', (_, header) => {
    expect(cookies.read(header)).toEqual({ entityId: ID, secret: CST });
  });

  it('does not lend the secret of one pair to the id of another whose own is malformed', () => {
    const header = `__svc_cid=${ID}; __svc_cst=x; __svc_cid=y; __svc_cst=${other.secret}`;
    expect(cookies.read(header)).toBeUndefined();
  });

  it('never throws, and finds nothing malformed, whatever the header', () => {
    const pieces = fc.constantFrom('__svc_cid=', '__svc_cst=', ID, CST, ';', ',', ' ', '"', '=', '\0', 'ÿ', '__svc_');
    const header = fc.array(fc.oneof(pieces, fc.string({ unit: 'binary' }))).map((parts) => parts.join(''));
    fc.assert(
      fc.property(header, (text) => {
        const found = cookies.read(text);
        if (!found) return;
        expect(found.entityId).toMatch(UUID);
        expect(found.secret).toMatch(SECRET);
      }),
      { numRuns: 2_000 },
    );
  });

  it('takes time that grows with the header, not with its square', () => {
    const header = `${'__svc_cid='.repeat(800)}${' __svc_cst="'.repeat(600)}`;
    const start = performance.now();
    cookies.read(header);
    expect(performance.now() - start).toBeLessThan(250);
  });
});

describe('writing the identity cookies', () => {
  it('sets what is read again, whatever stands around it', () => {
    const strange = fc.stringMatching(/^[!#-+\--:<-~]{0,20}$/).filter((text) => !text.includes('__svc_'));
    const junk = fc.array(strange, { maxLength: 3 });
    const separator = fc.constantFrom('; ', ';', ', ', ',', '  ');
    fc.assert(
      fc.property(
        junk,
        junk,
        junk,
        separator,
        fc.boolean(),
        fc.boolean(),
        (before, between, after, by, whole, swap) => {
          const shown = credentials();
          const lines: string[] = cookies.write(shown).map((line) => (whole ? line : (line.split(';')[0] as string)));
          if (swap) lines.reverse();
          const header = [...before, lines[0], ...between, lines[1], ...after].join(by);
          expect(cookies.read(header)).toEqual(shown);
        },
      ),
    );
  });

  it.each([
    ['', '__svc_'],
    ['A-b_', 'A-b_'],
    ['__Secure-', '__Secure-'],
  ])('names them by COOKIE_PREFIX %j, and reads no others', (COOKIE_PREFIX, prefix) => {
    const prefixed = cookiesWith({ COOKIE_PREFIX });
    const [cid, cst] = prefixed.write({ entityId: ID, secret: CST });
    expect(cid).toMatch(new RegExp(`^${prefix}cid=${ID};`));
    expect(cst).toMatch(new RegExp(`^${prefix}cst=${CST};`));
    expect(prefixed.read(`${cid}; ${cst}`)).toEqual({ entityId: ID, secret: CST });
    expect(prefixed.read(`other_cid=${ID}; other_cst=${CST}`)).toBeUndefined();
  });
});

function cookiesWith(environment: Record<string, string> = {}): IdentityCookies {
  return new IdentityCookies(loadConfiguration({ AUTH_URL: 'https://auth.example', ...environment }), new Clock());
}

function credentials() {
  return { entityId: uuidv7(Date.now()), secret: randomSecret('hex') };
}
