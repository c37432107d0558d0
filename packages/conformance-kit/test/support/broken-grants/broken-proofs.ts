import type { BrokenCase } from './broken-case.js';
import { passGrant } from './pass.grant.js';

type Row = [mistake: string, rule: string, failure: RegExp];

const PLAIN = 'no proof in plain text';
const GUESSES = 'after 3 wrong guesses';
const LIFETIME = 'after the lifetime';
const SHORT = 'short enough to guess';

const ROWS: Row[] = [
  [
    'ignores the expiry',
    LIFETIME,
    /^in the time zone America.New_York: after its lifetime of 300 s; compare the time .*: not refused/,
  ],
  ['reads its expiry as a local time', LIFETIME, /^in the time zone America.New_York: after its lifetime of 300 s/],
  ['ignores the client', 'only to the client', /^another client of the organization; store the client .*: not refused/],
  ['counts no guesses', GUESSES, /^code: the right value gets a token after 3 wrong guesses at the same time/],
  ['counts guesses by reading and writing', GUESSES, /^code: the right value gets a token after 3 wrong guesses at/],
  ['counts guesses after the comparison', GUESSES, /^code: .* among many wrong ones; count each guess before/],
  [
    'deletes the pass without reading the count',
    '20 concurrent',
    /^3 of 20 got a token; redeem the proof by one UPDATE/,
  ],
  ['counts guesses by the spelling of the id', 'another spelling', /^pass with a trailing space: gets a token after 3/],
  ['stores the id in plain text', PLAIN, /^pass\.pass: has a proof in plain text; store its sha256/],
  ['stores a number in plain text', PLAIN, /^pass\.pass: has a proof in plain text; store its sha256/],
  ['stores a hash of the code alone', PLAIN, /^pass\.code: has the hash of a short text, which trying all values/],
  ['creates the id with Math.random', 'Math.random()', /^pass: repeats when Math\.random\(\) repeats its numbers/],
  ['prints a secret of its route', 'while a proof is created', /^the log discloses [0-9a-f]{64}: sent: /],
  ['ignores ended sessions', 'whose sessions ended', /^a token after the sessions .* compare the stored `generation`/],
  ['has no participant', 'of an erased customer', /^pass\.customer: has the id of an erased customer; delete the rows/],
  ['has no @Expires', 'has @Expires', /^pass_note\.expires_at: nothing deletes the rows/],
  ['resets the attempts after a while', 'after the deletion', /^a used proof; keep the row that records its use until/],
];

/** Grants whose proofs, or the rows about them, violate a rule. */
export const BROKEN_PROOFS: BrokenCase[] = [
  ...ROWS.map(([mistake, rule, failure]) => ({ description: mistake, ...passGrant(mistake), rule, failure })),
  {
    description: 'has an id of six digits',
    ...passGrant('creates a short id'),
    guessable: undefined as never,
    rule: SHORT,
    failure: /^pass,code: at most 20 bits; create it with randomSecret\(\)/,
  },
  {
    description: 'has a code of six digits next to a long id, and counts no guesses',
    ...passGrant('counts no guesses'),
    guessable: undefined as never,
    rule: SHORT,
    failure: /^code: at most 20 bits; .* declare guessable: \{ parameter: 'code', limit: … \} in the test/,
  },
  {
    description: 'has a test that does not say how long a proof is valid',
    ...passGrant(),
    lifetime: undefined as never,
    rule: 'declares `boundToClient` and `lifetime`',
    failure: /^lifetime: declare after how many seconds a proof expires/,
  },
];
