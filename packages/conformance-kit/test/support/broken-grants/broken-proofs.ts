import type { BrokenCase } from './broken-case.js';
import { passGrant } from './pass.grant.js';

/** Grants whose proofs, or the rows about them, violate a rule. Only this rule detects the violation. */
export const BROKEN_PROOFS: BrokenCase[] = [
  {
    description: 'accepts an expired proof',
    ...passGrant('ignores the expiry'),
    rule: 'gives no token after the lifetime of the proof, because the test declares `lifetime`',
    failure: /^in the time zone America.New_York: after its lifetime of 300 s: not refused/,
  },
  {
    description: 'reads its expiry as a local time',
    ...passGrant('reads its expiry as a local time'),
    rule: 'gives no token after the lifetime of the proof, because the test declares `lifetime`',
    failure: /^in the time zone America.New_York: after its lifetime of 300 s: not refused/,
  },
  {
    description: 'accepts the proof of another client',
    ...passGrant('ignores the client'),
    rule: 'gives a token only to the client that the proof was created for, because the test declares `boundToClient`',
    failure: /^another client of the organization: not refused/,
  },
  {
    description: 'admits any number of guesses',
    ...passGrant('counts no guesses'),
    rule: 'refuses a right proof after 3 wrong guesses, because the test declares `guessable`',
    failure: /^code: the right value gets a token after 3 wrong guesses at the same time/,
  },
  {
    description: 'reads the number of guesses, checks it and then writes it',
    ...passGrant('counts guesses by reading and writing'),
    rule: 'refuses a right proof after 3 wrong guesses, because the test declares `guessable`',
    failure: /^code: the right value gets a token after 3 wrong guesses at the same time/,
  },
  {
    description: 'compares each code before it counts the guess',
    ...passGrant('counts guesses after the comparison'),
    rule: 'refuses a right proof after 3 wrong guesses, because the test declares `guessable`',
    failure: /^code: the right value gets a token among many wrong ones; count each guess before/,
  },
  {
    description: 'reads a pass, and deletes it without reading the count',
    ...passGrant('deletes the pass without reading the count'),
    rule: 'gives one token to 20 concurrent requests, and none to a later request on another process',
    failure: /^3 of 20 got a token/,
  },
  {
    description: 'counts guesses by a text whose trailing space the lookup ignores',
    ...passGrant('counts guesses by the spelling of the id'),
    rule: 'refuses another spelling of a right proof after too many guesses',
    failure: /^pass with a trailing space: gets a token after 3 wrong guesses/,
  },
  {
    description: 'stores its proof in plain text',
    ...passGrant('stores the id in plain text'),
    rule: 'stores no proof in plain text in any table',
    failure: /^pass\.pass: has a proof in plain text; store its sha256/,
  },
  {
    description: 'stores a hash of its short code alone',
    ...passGrant('stores a hash of the code alone'),
    rule: 'stores no proof in plain text in any table',
    failure: /^pass\.code: has the hash of a short proof, which trying all values reverses/,
  },
  {
    description: 'creates its proof with Math.random',
    ...passGrant('creates the id with Math.random'),
    rule: 'does not create proofs with Math.random()',
    failure: /^pass: repeats when Math\.random\(\) repeats its numbers/,
  },
  {
    description: 'has an id of six digits',
    ...passGrant('creates a short id'),
    guessable: undefined as never,
    rule: 'has no parameter that is short enough to guess, because the test does not declare `guessable`',
    failure: /^pass,code: at most 20 bits; create it with randomSecret\(\)/,
  },
  {
    description: 'has a code of six digits next to a long id, and counts no guesses',
    ...passGrant('counts no guesses'),
    guessable: undefined as never,
    rule: 'has no parameter that is short enough to guess, because the test does not declare `guessable`',
    failure: /^code: at most 20 bits; .* declare guessable: \{ parameter: 'code', limit: … \} in the test/,
  },
  {
    description: 'prints a secret before it gets a request',
    ...passGrant('prints a secret of its route'),
    rule: 'discloses no secret on stdout, on stderr, in the log, the audit or the metrics while a proof is created',
    failure: /^the log discloses [0-9a-f]{64}: sent: /,
  },
  {
    description: 'gives a token for a customer that was erased',
    ...passGrant('gives a token for an erased customer'),
    rule: 'gives no token for a customer that was erased after the proof was created',
    failure: /^after the erasure of its customer: entity_id is no customer of the organization/,
  },
  {
    description: 'gives a token for a customer whose sessions have ended',
    ...passGrant('ignores ended sessions'),
    rule: 'gives no token for a customer whose sessions ended after the proof was created',
    failure: /^a token after the sessions of the customer ended; compare the stored `generation`/,
  },
  {
    description: 'stores customers and takes no part in their erasure',
    ...passGrant('has no participant'),
    rule: 'leaves no row of an erased customer in any table',
    failure: /^pass\.customer: has the id of an erased customer; delete the rows in `onErase`/,
  },
  {
    description: 'has a table with an expiry and without @Expires',
    ...passGrant('has no @Expires'),
    rule: 'has @Expires on each table whose rows expire',
    failure: /^pass_note\.expires_at: nothing deletes the rows/,
  },
  {
    description: 'accepts a used proof again after a while',
    ...passGrant('resets the attempts after a while'),
    rule: 'gives no second token after the deletion of expired rows',
    failure: /^a used proof; keep the row that records its use until the proof expires: not refused/,
  },
  {
    description: 'has a test that does not say how long a proof is valid',
    ...passGrant(),
    lifetime: undefined as never,
    rule: 'has a test that declares `boundToClient` and `lifetime`, because it declares `singleUse`',
    failure: /^lifetime: declare after how many seconds a proof expires/,
  },
];
