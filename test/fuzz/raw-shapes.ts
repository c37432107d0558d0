import type { Random } from './random.js';

/** The id of a smuggled request. Only a vulnerable server parses and executes it. */
export const SMUGGLED_ID = 'fz-smuggled-request';

const BODY = '{"grant_type":"cookie","client_id":"acme-site","response_type":"token"}';
const SMUGGLED = `GET /v2/customer/info HTTP/1.1\r\nHost: auth.example\r\nX-Request-Id: ${SMUGGLED_ID}\r\n\r\n`;
const HOST = 'Host: auth.example';
const START = 'POST /v2/customer/token HTTP/1.1';

const message = (...lines: string[]) => [START, HOST, ...lines].join('\r\n');
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const CHUNKED = `${chunk(BODY)}0\r\n\r\n`;
const chunked = (body: string) => message('Transfer-Encoding: chunked', '', body + SMUGGLED);

/** Bytes that two servers may read as different requests. test/http/requests.e2e-spec.ts has further ones. */
const AMBIGUOUS: Record<string, string> = {
  'CL and TE': message('Content-Length: 4', 'Transfer-Encoding: chunked', '', `${CHUNKED}${SMUGGLED}`),
  'CL.TE with an empty chunk first': message(
    `Content-Length: ${5 + SMUGGLED.length}`,
    'Transfer-Encoding: chunked',
    '',
    `0\r\n\r\n${SMUGGLED}`,
  ),
  'two lengths': message('Content-Length: 0', `Content-Length: ${SMUGGLED.length}`, '', SMUGGLED),
  'a length with a sign': message(`Content-Length: +${SMUGGLED.length}`, '', SMUGGLED),
  'a length beyond all numbers': message('Content-Length: 18446744073709551616', '', SMUGGLED),
  'a space before the colon': message(`Content-Length : ${SMUGGLED.length}`, '', SMUGGLED),
  'an unknown coding': message('Transfer-Encoding: xchunked', '', SMUGGLED),
  'a coding after chunked': message('Transfer-Encoding: chunked, identity', '', CHUNKED + SMUGGLED),
  'a coding folded': message('Transfer-Encoding:', ' chunked', 'Content-Length: 3', '', CHUNKED + SMUGGLED),
  'chunked in HTTP/1.0 with a length': `POST /v2/customer/token HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n${CHUNKED}${SMUGGLED}`,
  'a chunk size with a sign': chunked(`+1\r\na\r\n0\r\n\r\n`),
  'a chunk size beyond all numbers': chunked(`ffffffffffffffff1\r\na\r\n0\r\n\r\n`),
  'a chunk size ended by a bare LF': chunked(`1\na\r\n0\r\n\r\n`),
  'a chunk extension with a bare CR': chunked(`1;x\ry\r\na\r\n0\r\n\r\n`),
  'a chunk longer than it says': chunked(`1\r\nabc\r\n0\r\n\r\n`),
  'a huge chunk extension': chunked(`1;${'x'.repeat(40_000)}\r\na\r\n0\r\n\r\n`),
  'a trailer without a colon': chunked(`0\r\nno trailer\r\n\r\n`),
};

/** Invalid request heads. The bytes after them are not a second request either. */
const HEADS: Record<string, string> = {
  'bare LF everywhere': `${START}\n${HOST}\nContent-Length: 0\n\n`,
  'bare CR in a value': message('X: a\rTransfer-Encoding: chunked', 'Content-Length: 0', '', ''),
  'a NUL in a name': message('X\0: a', '', SMUGGLED),
  'a NUL in a value': message('X: a\0b', '', SMUGGLED),
  'a name of nothing': message(': a', '', SMUGGLED),
  'a folded line first': [START, ' folded: yes', HOST, '', SMUGGLED].join('\r\n'),
  'no Host': `${START}\r\nContent-Length: 0\r\n\r\n`,
  'a head of 40 KB': message(`X: ${'x'.repeat(40_000)}`, '', ''),
  'a head of 4,000 lines': message(...Array.from({ length: 4_000 }, (_, each) => `x${each}: y`), '', ''),
  'a target of 60 KB': `GET /${'a'.repeat(60_000)} HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'HTTP/0.9': 'GET /\r\n\r\n',
  'HTTP/9.9': `GET / HTTP/9.9\r\n${HOST}\r\n\r\n`,
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  TLS: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random-client-hello',
  'a proxy line': `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${SMUGGLED}`,
  CONNECT: `CONNECT auth.example:443 HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'an empty head': '\r\n\r\n\r\n\r\nGET',
};

const CUT: Record<string, string> = {
  'a head cut off': message('X-Cut: y').slice(0, -3),
  'a body cut off': message(`Content-Length: ${BODY.length + 50}`, '', BODY),
  'a chunk cut off': message('Transfer-Encoding: chunked', '', `ff\r\n${BODY}`),
};

const SHAPES: Record<string, string> = { ...AMBIGUOUS, ...HEADS, ...CUT };

/** A random shape, which is sometimes cut off at a random position. */
export function rawShape(random: Random): { name: string; bytes: Buffer } {
  const name = random.pick(Object.keys(SHAPES));
  const bytes = Buffer.from(SHAPES[name] as string, 'latin1');
  if (random.chance(0.7)) return { name, bytes };
  return { name: `${name}, cut`, bytes: bytes.subarray(0, 1 + random.below(bytes.length)) };
}
