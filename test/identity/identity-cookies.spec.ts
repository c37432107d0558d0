import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { IdentityCookies } from '../../src/identity/identity-cookies.js';
import { Clock } from '../../src/platform/clock.js';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { randomSecret } from '../../src/platform/secret.js';
import { uuidv7 } from '../../src/platform/uuid.js';
import { randomRuns } from '../nightly.js';

const ORIGIN = 'https://acme.example';
const cookies = cookiesWith();
const own = credentials();
const { entityId: ID, cst: CST } = own;
const other = credentials();
const pair = headerOf(own);
const OWN = { pairs: [pairOf(own)] };

/** RFC 6265 §4.1.1: `token` without `=`, and `cookie-octet`. */
const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/).filter((name) => !/^__svc_c(id|st)$/.test(name));
const uuid = fc.uuid();
const hex = fc.stringMatching(/^[0-9a-f]{96}$/);
const anyCst = fc.stringMatching(/^[0-9a-f]{112}$/);
const octets = fc.stringMatching(/^[!#-+\--:<-[\]-~]{0,40}$/);

/** Text that a header parser could mistake for an identity cookie. */
const bait = fc
  .tuple(fc.constantFrom(' ', '\t', ',', ', ', '"', '" ', '=', '', "'"), fc.constantFrom('cid', 'cst'))
  .map(([separator, name]) => `${separator}__svc_${name}=${name === 'cid' ? other.entityId : other.cst}`);

/** Any other cookie whose value contains text that looks like an identity cookie. */
const baited = fc
  .tuple(token, octets, fc.array(bait, { minLength: 1, maxLength: 3 }), octets)
  .map(([name, before, baits, after]) => `${name}=x${before}${baits.join('')}${after}`);

describe('reading the identity cookies', () => {
  it.each([
    ['as browsers send them', pair],
    ['in the other order', `__svc_cst=${CST}; __svc_cid=${ID}`],
    ['with blanks around names and values', ` __svc_cid\t= ${ID} ; __svc_cst = ${CST}\t`],
    ['among others', `a=b; ${pair}; c=d`],
    ['in quotes', `__svc_cid="${ID}"; __svc_cst="${CST}"`],
    ['among pieces without a name or without =', `; =; =x; __svc_cid; ${pair}; ;`],
    ['twice, with the same values', `${pair}; ${pair}`],
    ['next to cookies whose names end like theirs', `x__svc_cid=${other.entityId}; ${pair}; x__svc_cst=${other.cst}`],
    ['next to cookies whose names begin like theirs', `__svc_cid2=${other.entityId}; ${pair}; __svc_cst2=${other.cst}`],
    ['after a malformed pair', `__svc_cid=x; __svc_cst=y; ${pair}`],
    ['after an empty pair', `__svc_cid=; __svc_cst=; ${pair}`],
  ])('finds them %s', (_, header) => {
    expect(cookies.read(header, ORIGIN)).toEqual(OWN);
    expect(cookies.read(header, undefined)).toEqual(OWN);
  });

  it.each([
    ['no header', undefined],
    ['the id alone', `__svc_cid=${ID}`],
    ['the secret alone', `__svc_cst=${CST}`],
    ['an id in upper case', `__svc_cid=${ID.toUpperCase()}; __svc_cst=${CST}`],
    ['the id of one response with the secret of another', `__svc_cid=${ID}; __svc_cst=${other.cst}`],
    [
      'a secret of the browser that was set with another customer',
      `__svc_cid=${ID}; __svc_cst=${cstOf({ ...own, entityId: other.entityId })}`,
    ],
    ['a secret with another last digit', `__svc_cid=${ID}; __svc_cst=${flipped(CST)}`],
    ['a secret in upper case', `__svc_cid=${ID}; __svc_cst=${CST.toUpperCase()}`],
    ['an id that is no UUID', `__svc_cid=1; __svc_cst=${CST}`],
    ['a secret of 111 digits', `__svc_cid=${ID}; __svc_cst=${CST.slice(1)}`],
    ['JSON cookies', `__svc_cid=j:{"$ne":null}; __svc_cst=j:{"$ne":null}`],
    ['signed cookies', `__svc_cid=s:${ID}; __svc_cst=s:${CST}`],
    ['names in upper case', pair.toUpperCase()],
    ['bytes outside ASCII', `__svc_cid=ÿ${ID}; __svc_cst=${CST}`],
    ['a no-break space before a name', `\u00a0__svc_cid=${ID}; __svc_cst=${CST}`],
    ['a zero byte at the end', `__svc_cid=${ID}\0; __svc_cst=${CST}`],
    ['one quote before the value', `__svc_cid="${ID}; __svc_cst="${CST}`],
    ['two quotes around the value', `__svc_cid=""${ID}""; __svc_cst=""${CST}""`],
    ['text after the value', `__svc_cid=${ID} x; __svc_cst=${CST} x`],
    ['4 KB of digits', `__svc_cid=${ID}; __svc_cst=${'0'.repeat(4096)}`],
    ['names that end like theirs', `a__svc_cid=${ID}; a__svc_cst=${CST}`],
  ])('finds none in %s', (_, header) => {
    expect(cookies.read(header, ORIGIN)).toBeUndefined();
    expect(cookies.read(header, undefined)).toBeUndefined();
  });

  it('finds no identity cookie inside the value of another cookie', () => {
    fc.assert(
      fc.property(fc.array(baited, { minLength: 1 }), fc.array(baited), fc.boolean(), (before, after, isOwn) => {
        const header = [...before, ...(isOwn ? [pair] : []), ...after].join('; ');
        expect(cookies.read(header, ORIGIN)).toEqual(isOwn ? OWN : undefined);
        expect(cookies.read(header, undefined)).toEqual(isOwn ? OWN : undefined);
      }),
      randomRuns(2_000),
    );
  });

  it('finds what an independent regular expression finds, and never throws, in any text', () => {
    const whole = (name: string, value: string) =>
      new RegExp(`(?<![^;])[ \\t]*${name}[ \\t]*=[ \\t]*(?:"(${value})"|(${value}))[ \\t]*(?![^;])`, 'g');
    const [ids, secrets] = [
      whole('__svc_cid', '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'),
      whole('__svc_cst', '[0-9a-f]{112}'),
    ];
    const valuesOf = (text: string, pattern: RegExp) => {
      const distinct = [...new Set(Array.from(text.matchAll(pattern), ([, quoted, plain]) => quoted ?? plain))];
      return distinct.length > 4 ? [distinct[0], ...distinct.slice(-3)] : distinct;
    };
    const random = fc.tuple(uuid, hex).map(([entityId, secret]) => headerOf(withCst({ entityId, secret })));
    const unfitting = fc.tuple(uuid, anyCst).map(([entityId, cst]) => headerOf({ entityId, cst }));
    const pieces = fc.constantFrom(
      ...['__svc_cid=', '__svc_cst=', ID, CST, ';', ';', '; ', ',', ' ', '\t', '"', '=', '\0', 'ÿ'],
    );
    const text = fc
      .array(fc.oneof(pieces, pieces, random, unfitting, fc.string({ unit: 'binary' })))
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, (header) => {
        const found = valuesOf(header, secrets).flatMap((cst = '') =>
          valuesOf(header, ids)
            .map((entityId = '') => withCst({ entityId, secret: cst.slice(0, 96) }))
            .filter((each) => each.cst === cst),
        );
        expect(cookies.read(header, ORIGIN)).toEqual(found.length === 0 ? undefined : { pairs: found.map(pairOf) });
        expect(() => cookies.read(header, undefined)).not.toThrow();
      }),
      randomRuns(3_000),
    );
  });

  it.each([
    ['names', '__svc_cid='],
    ['quotes', '__svc_cst="'],
    ['cookies of a few letters', 'a=b;'],
    ['semicolons', ';'],
    ['commas', ','],
    ['spaces', ' '],
    ['tabs before semicolons', '\t\t\t\t;'],
    ['equals signs', '='],
    ['pairs', `${pair};`],
  ])('ends for a header of 1 MB, which it would not if its time grew with the square: %s', (_, text) => {
    const many = text.repeat(1_000_000 / text.length);
    for (const header of [many, `__svc_cid=${many}`, `__svc_cid=x${many}x`]) {
      for (const origin of [ORIGIN, undefined]) {
        cookies.read(header, origin);
      }
    }
  });
});

it('reading several pairs of identity cookies returns at most four pairs: the first and the last three', () => {
  const all = Array.from({ length: 100 }, credentials);
  const firstAndLastThree = [...all.slice(0, 1), ...all.slice(-3)];
  expect(cookies.read(all.map(headerOf).join('; '), ORIGIN)).toEqual({ pairs: firstAndLastThree.map(pairOf) });
});

it('the identity cookies of a response are read again as the pair that was set', () => {
  const header = cookies
    .setCookieLines(own)
    .map((line) => line.split(';')[0])
    .join('; ');
  expect(header).toBe(pair);
  expect(cookies.read(header, ORIGIN)).toEqual(OWN);
});

describe('a Cookie header that a program made from Set-Cookie lines', () => {
  const lines = cookies.setCookieLines(own);

  it.each([
    ['whole lines joined by a comma', lines.join(', ')],
    ['whole lines in the other order', [...lines].reverse().join(',')],
    ['pairs joined by a comma', pair.replace(';', ',')],
    ['whole lines and one of another program', [...lines, 'route=1; Path=/'].join(', ')],
  ])('is read without an Origin: %s', (_, header) => {
    expect(cookies.read(header, undefined)).toEqual(OWN);
    expect(cookies.read(header, ORIGIN)).toBeUndefined();
    expect(cookies.read(header, '')).toBeUndefined();
  });

  it.each([
    ['another cookie comes first', `a=b; ${lines.join(', ')}`],
    ['the pair is in the value of another cookie', `a=b, ${lines.join(', ')}`],
    ['a cookie whose name begins like theirs comes first', `__svc_cid2=b, ${lines.join(', ')}`],
  ])('is not read if %s', (_, header) => {
    expect(cookies.read(header, undefined)).toBeUndefined();
  });
});

function cookiesWith(environment: Record<string, string> = {}): IdentityCookies {
  return new IdentityCookies(loadConfiguration({ AUTH_URL: 'https://auth.example', ...environment }), new Clock());
}

/** What the two cookies of a browser are made of, and the value of the second one (protocol §5.2). */
interface Credentials {
  entityId: string;
  /** The browser's id without hyphens, and its secret. */
  secret: string;
  cst: string;
}

function credentials(): Credentials {
  return withCst({ entityId: uuidv7(Date.now()), secret: randomSecret('hex', 48) });
}

function withCst(known: Omit<Credentials, 'cst'>): Credentials {
  return { ...known, cst: cstOf(known) };
}

function cstOf({ entityId, secret }: Omit<Credentials, 'cst'>): string {
  return secret + createHmac('sha256', secret.slice(32)).update(entityId).digest('hex').slice(0, 16);
}

function headerOf({ entityId, cst }: Pick<Credentials, 'entityId' | 'cst'>): string {
  return `__svc_cid=${entityId}; __svc_cst=${cst}`;
}

/** The pair as it is read. */
function pairOf({ entityId, secret }: Credentials) {
  const browserId = [0, 8, 12, 16, 20].map((at, index, all) => secret.slice(at, all[index + 1] ?? 32)).join('-');
  return { entityId, browserId, secret: secret.slice(32), cookie: secret };
}

function flipped(text: string): string {
  return text.slice(0, -1) + (text.endsWith('0') ? '1' : '0');
}
