import type { TestedGrant, TestedRoute } from './failures-of.js';
import { makes } from './mistake.js';
import { notes } from './notes.js';
import { LOGS_CODE_OF_URL, phoneCode } from './phone-code.js';
import { pollingGrant } from './polling.grant.js';
import { signedPass } from './signed-pass.grant.js';
import { grantThat, sound } from './ticket.grant.js';
import { voucher } from './voucher.js';

/** A mistake of an author, the rule that finds it, and the option that a test omits if this is the mistake. */
export type Row = [mistake: string, rule: string, failure: RegExp, omitted?: string];

/**
 * A grant or a route, and its mistakes. It reads the first one when its classes are declared, and each one when it
 * runs.
 */
interface Mistakes {
  subject: string;
  tested: () => TestedGrant | TestedRoute;
  rows: Row[];
}

const FORGED = 'refuses a JWT';
const RACED = 'to concurrent requests on two processes';
const POLLED = 'answers polls by RFC 8628';
const UPSTREAM = 'if the real system fails';
const MESSAGES = 'too many messages';
const SECRET = 'shows the secret of a message';
const HOSTILE = 'unusual texts';
const OF_COLLEAGUE = 'shows and changes nothing of another caller';
const AWAITED = 'discloses no secret'; // any rule that sends a request

/** A grant whose ticket any caller knows. */
function ticket(): TestedGrant {
  const provided = grantThat(async (request, customers) => {
    const { body } = request;
    if (makes('relies on an optional parameter') && body.redirect_uri === undefined) throw new TypeError('no URL');
    if (makes('accepts any ticket')) body.ticket = '123456';
    if (makes('rejects a promise that nothing awaits')) void Promise.reject(new Error('a provider is away'));
    if (makes('throws in a timer'))
      setImmediate(() => {
        throw new Error('a timer');
      });
    return sound(request, customers);
  });
  return {
    ...provided,
    valid: () => ({ ticket: '123456', redirect_uri: 'https://kit.example/' }),
    forged: () => [{ ticket: '654321' }],
    anyOrganization: true,
  };
}

export const MISTAKES: Mistakes[] = [
  {
    subject: 'a ticket',
    tested: ticket,
    rows: [
      ['relies on an optional parameter', 'optional parameters', /^without redirect_uri: status 500/],
      ['accepts any ticket', 'each forged proof', /^the forged proof .* gets a token; check the proof/],
      ['is not tested with forged proofs', 'declares `forged`', /^return forged proofs/, 'forged'],
      ['rejects a promise that nothing awaits', AWAITED, /no code catches; await.*a provider is/],
      ['throws in a timer', AWAITED, /no code catches; await.*a timer/],
    ],
  },
  {
    subject: 'a code by phone',
    tested: () => phoneCode().ofGrant,
    rows: [
      [
        'trusts the phone of the request',
        'phone or email address of another proof',
        /^phone: the address of another proof: gets a token; store the address/,
      ],
      [
        'creates a customer for each proof',
        'a person one customer',
        /^another customer for the same person; get the customer/,
      ],
      ['is not tested with a second proof', 'declares `again`', /^phone: declare `again`/, 'again'],
    ],
  },
  {
    subject: 'a signed pass',
    tested: signedPass,
    rows: [
      ['checks no signature', FORGED, /^pass: without its signature: gets a token/],
      ['accepts unsigned passes', FORGED, /^pass: with the algorithm none: gets a token/],
      ['takes the key from the pass', FORGED, /^pass: signed with another key in its own header: gets a token/],
      [
        'accepts the keys of all organizations',
        'the proof of another organization',
        /gets a token; store the organization/,
      ],
      ['counts by SELECT and UPDATE', RACED, /^([4-9]|1\d|20) of 20 got a token; redeem the proof by/],
      ['counts in memory', RACED, /^6 of 20 got a token; redeem the proof by/],
    ],
  },
  {
    subject: 'a polled proof',
    tested: pollingGrant,
    rows: [
      ['never slows a poll down', POLLED, /^a poll within 5 s of the last one; store the time of the last poll/],
      ['creates a customer for a poll', POLLED, /^the first poll: an error response after a customer was created/],
      ['creates a customer in its start route', POLLED, /^a customer exists before the confirmation/],
      ['redeems a proof twice', POLLED, /^a second use: not refused with 400 invalid_grant/],
      ['is not tested with a pending proof', 'declares `pending`', /^pending: return/, 'pending'],
    ],
  },
  {
    subject: 'a voucher in a table of the team',
    tested: () => voucher().ofGrant,
    rows: [
      ['stores the voucher in plain text', 'no proof in plain text', /^kit_voucher\.hash: has a proof in plain text/],
      ['stores the longest text', 'limits the length', /kit_voucher\.hash: has a text of 200 characters in a varchar/],
      ['creates a short voucher', 'refuses a short proof', /^voucher: the right value gets a token after 5 wrong ones/],
      ['stores a hash of a short voucher', 'no hash of a short code', /^kit_voucher\.hash: has the hash of a short/],
      ['creates the voucher with Math.random', 'Math.random()', /repeats when Math\.random\(\) repeats its numbers/],
      ['erases nothing', 'no row of an erased customer', /^kit_voucher\.entity_id: has the id of an erased customer/],
      ['fails to export rows', 'has an export', /^`exportRows` of a participant fails/],
      ['exports the hash', 'has an export', /^the export has a secret or its hash: \w+; leave its column out/],
      ['prints a secret of its route', 'discloses no secret', /^the log discloses [\w-]{43}: created/],
      ['logs the voucher', 'discloses no secret', /^the log discloses [\w-]{43}: .*asked for/],
      ['repeats the voucher in a hint', 'discloses no secret', /^an error response that discloses a secret: [\w-]{43}/],
      ['fails for a name of an object', HOSTILE, /^voucher: "(__proto__|constructor|toString)": status 500/],
      ['ignores the client', 'only to the client', /^another client: gets a token; store the client/],
      ['ignores the expiry', 'after the lifetime', /^after its lifetime of 300 s: gets a token/],
      ['redeems by SELECT and UPDATE', RACED, /^([2-9]|1\d|20) of 20 got a token; redeem the proof by/],
      ['redeems again and again', 'none to a further request', /^redeem the proof by .* declare uses: 'unlimited'/],
      ['revives in a purge', 'after the deletion of expired rows', /^a proof that was used up 270 s ago: gets a token/],
      ['calls each error invalid', 'while the database is unavailable', /^let each error of `Database` pass/],
      ['creates a customer before it refuses', AWAITED, /^an error response after a customer was created/],
    ],
  },
  {
    subject: 'a voucher whose body has no limit and no type',
    tested: () => voucher().ofGrant,
    rows: [
      ['accepts any value', HOSTILE, /^voucher: 7: status 500/],
      ['accepts any value', 'limits the length', /^voucher: its rules accept 10000 characters; give it the @MaxLength/],
    ],
  },
  {
    subject: 'a voucher without a lifetime',
    tested: () => voucher().ofGrant,
    rows: [['declares no lifetime', 'declares the lifetime', /^declare `lifetime` in @GrantType/]],
  },
  {
    subject: 'a voucher that nothing ends',
    tested: () => voucher().ofGrant,
    rows: [
      ['ignores the end', 'bearer token that created the proof', /^a proof of a caller whose bearer token has ended/],
    ],
  },
  {
    subject: 'a route that sends a code',
    tested: () => phoneCode().ofRoute,
    rows: [
      ['limits only the network', MESSAGES, /^200 after 30 requests for the same text; take from a limit for/],
      ['creates codes with Math.random', 'Math.random()', /repeats when Math\.random\(\) repeats its numbers/],
      ['logs the code', SECRET, /^the log discloses \d{6}/],
      [LOGS_CODE_OF_URL, SECRET, /^the log discloses \d{6}/],
      ['responds with the code', SECRET, /^the response has all of the message, which so proves nothing: \d{6}/],
      [
        'says whether a phone is known',
        'an unknown address the same',
        /^phone: a known address gets .*known: true\nan/,
      ],
      ['counts messages that were not sent', 'was not sent', /^429 after failures of the system; call `giveBack\(\)`/],
      ['does not await its message', UPSTREAM, /^200 if the system responds with 500; await the call/],
      ['has no time-out', UPSTREAM, /^the system does not respond; await the call, give it a time-out.*: no response/],
      ['lets a failed connection be a 500', UPSTREAM, /^500 if the system closes the connection/],
      ['ignores the status', UPSTREAM, /^200 if the system responds with 500/],
    ],
  },
  {
    subject: 'a route that sends a code for any client',
    tested: () => phoneCode().ofRoute,
    rows: [['names no grant', 'names its grant', /^add \{ grant: '…' \} to @ClientRequest/]],
  },
  {
    subject: 'a route with a list',
    tested: () => notes().list,
    rows: [
      ['shows notes of a colleague', OF_COLLEAGUE, /^shows note-\d+ of another caller of its/],
      ['shows notes of everyone', 'nothing of another organization', /^shows note-\d+ of another organization/],
      ['writes in a GET', 'changes no row', /^changes the row kit_note/],
      ['lists all rows', 'at most 20 rows', /^26 rows; read at most 20 by LIMIT/],
      ['is not tested with many rows', 'declares `list`', /^declare list: \{ add, most \}/, 'list'],
      ['is not tested with another caller', 'declares `actsOn`', /^actsOn: declare 'own caller'/, 'actsOn'],
    ],
  },
  {
    subject: 'a route with a path parameter',
    tested: () => notes().get,
    rows: [['fails for an odd id', HOSTILE, /^id: "%\w*": status 500/]],
  },
  {
    subject: 'a route without content',
    tested: () => notes().delete,
    rows: [['deletes notes of everyone', OF_COLLEAGUE, /^changes a row of another caller of its organization/]],
  },
  {
    subject: 'a route about a customer',
    tested: () => notes().ofCustomer,
    rows: [
      ['does not look up the customer', 'refuses a customer of another', /^for another organization's customer 204\n/],
    ],
  },
  {
    subject: 'a route of agents',
    tested: () => notes().ofCustomer,
    rows: [['needs another scope', 'an agent without its scope', /^not refused with 403/]],
  },
  {
    subject: 'a route that adds a row',
    tested: () => notes().add,
    rows: [
      ['admits agents', 'without a bearer token', /^an agent's token: not refused with 401/],
      ['erases nothing', 'no row of an erased customer', /^kit_note\.owner: has the id/],
    ],
  },
];
