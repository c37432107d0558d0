import type { Random } from '../../packages/conformance-kit/src/fuzz/random.js';

/** The id of a smuggled request. Only a vulnerable server parses and executes it. */
export const SMUGGLED_ID = 'fz-smuggled-request';

export interface RawShape {
  name: string;
  bytes: Buffer;
}

const BODY = '{"grant_type":"cookie","client_id":"acme-site","response_type":"token"}';
const SMUGGLED = `GET /v2/customer/info HTTP/1.1\r\nHost: auth.example\r\nX-Request-Id: ${SMUGGLED_ID}\r\n\r\n`;
const HOST = 'Host: auth.example';
const START = 'POST /v2/customer/token HTTP/1.1';

const message = (...lines: string[]) => [START, HOST, ...lines].join('\r\n');
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const CHUNKED = `${chunk(BODY)}0\r\n\r\n`;

/** Ambiguous body lengths, for which two servers may find different ends of the body. */
const LENGTHS: Record<string, string> = {
  'CL and TE': message('Content-Length: 4', 'Transfer-Encoding: chunked', '', `${CHUNKED}${SMUGGLED}`),
  'TE and CL': message('Transfer-Encoding: chunked', `Content-Length: ${CHUNKED.length}`, '', `${CHUNKED}${SMUGGLED}`),
  'CL.TE with an empty chunk first': message(
    `Content-Length: ${5 + SMUGGLED.length}`,
    'Transfer-Encoding: chunked',
    '',
    `0\r\n\r\n${SMUGGLED}`,
  ),
  'two lengths': message('Content-Length: 0', `Content-Length: ${SMUGGLED.length}`, '', SMUGGLED),
  'a list of lengths': message(`Content-Length: 0, ${SMUGGLED.length}`, '', SMUGGLED),
  'a length with a sign': message(`Content-Length: +${SMUGGLED.length}`, '', SMUGGLED),
  'a length below zero': message('Content-Length: -1', '', SMUGGLED),
  'a length in hex': message(`Content-Length: 0x${SMUGGLED.length.toString(16)}`, '', SMUGGLED),
  'a length beyond all numbers': message('Content-Length: 18446744073709551616', '', SMUGGLED),
  'an empty length': message('Content-Length:', '', SMUGGLED),
  'a space before the colon': message(`Content-Length : ${SMUGGLED.length}`, '', SMUGGLED),
  'a tab before the coding': message('Transfer-Encoding:\tchunked', 'Content-Length: 0', '', SMUGGLED),
  'an unknown coding': message('Transfer-Encoding: xchunked', '', SMUGGLED),
  'a coding after chunked': message('Transfer-Encoding: chunked, identity', '', CHUNKED + SMUGGLED),
  'two codings in two fields': message(
    'Transfer-Encoding: identity',
    'Transfer-Encoding: chunked, x',
    '',
    CHUNKED + SMUGGLED,
  ),
  'a coding with a NUL': message('Transfer-Encoding: chunked\0', '', CHUNKED + SMUGGLED),
  'a coding folded': message('Transfer-Encoding:', ' chunked', 'Content-Length: 3', '', CHUNKED + SMUGGLED),
  'a length folded': message('X: y', ` Content-Length: ${SMUGGLED.length}`, 'Content-Length: 4, 5', '', SMUGGLED),
  'chunked in HTTP/1.0 with a length': `POST /v2/customer/token HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n${CHUNKED}${SMUGGLED}`,
};

/** Chunks with an ambiguous end. */
const CHUNKS: Record<string, string> = {
  'a size with a sign': `+1\r\na\r\n0\r\n\r\n${SMUGGLED}`,
  'a size in 0x': `0x1\r\na\r\n0\r\n\r\n${SMUGGLED}`,
  'a size with a space': `1 \r\na\r\n0\r\n\r\n${SMUGGLED}`.replace('1 ', ' 1'),
  'a size beyond all numbers': `ffffffffffffffff1\r\na\r\n0\r\n\r\n${SMUGGLED}`,
  'no size': `\r\na\r\n0\r\n\r\n${SMUGGLED}`,
  'no end of a chunk': `1\r\na0\r\n\r\n${SMUGGLED}`,
  'a size ended by a bare LF': `1\na\r\n0\r\n\r\n${SMUGGLED}`,
  'an extension ended by a bare LF': `1;x\na\r\n0\r\n\r\n${SMUGGLED}`,
  'an extension with a bare CR': `1;x\ry\r\na\r\n0\r\n\r\n${SMUGGLED}`,
  'a chunk longer than it says': `1\r\nabc\r\n0\r\n\r\n${SMUGGLED}`,
  'a huge extension': `1;${'x'.repeat(40_000)}\r\na\r\n0\r\n\r\n${SMUGGLED}`,
  'a trailer without a colon': `0\r\nno trailer\r\n\r\n${SMUGGLED}`,
};

/** Invalid request heads. The bytes after them are not a second request either. */
const HEADS: Record<string, string> = {
  'bare LF after the first line': `${START}\n${HOST}\r\nContent-Length: 0\r\n\r\n`,
  'bare LF everywhere': `${START}\n${HOST}\nContent-Length: 0\n\n`,
  'bare CR in a value': message('X: a\rTransfer-Encoding: chunked', 'Content-Length: 0', '', ''),
  'a NUL in a name': message('X\0: a', '', SMUGGLED),
  'a NUL in a value': message('X: a\0b', '', SMUGGLED),
  'a name of nothing': message(': a', '', SMUGGLED),
  'a line of no header': message('no header', '', SMUGGLED),
  'a folded line first': [START, ' folded: yes', HOST, '', SMUGGLED].join('\r\n'),
  'no Host': `${START}\r\nContent-Length: 0\r\n\r\n`,
  'a head of 40 KB': message(`X: ${'x'.repeat(40_000)}`, '', ''),
  'a head of 4,000 lines': message(...Array.from({ length: 4_000 }, (_, each) => `x${each}: y`), '', ''),
  'a target of 60 KB': `GET /${'a'.repeat(60_000)} HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'HTTP/0.9': 'GET /\r\n\r\n',
  'HTTP/1.2': `GET / HTTP/1.2\r\n${HOST}\r\n\r\n`,
  'HTTP/9.9': `GET / HTTP/9.9\r\n${HOST}\r\n\r\n`,
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a name of no protocol': `GET / HTPP/1.1\r\n${HOST}\r\n\r\n`,
  'two spaces': `GET  / HTTP/1.1\r\n${HOST}\r\nConnection: close\r\n\r\n`,
  'a tab for a space': `GET\t/ HTTP/1.1\r\n${HOST}\r\n\r\n`,
  TLS: '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random-client-hello',
  'a proxy line': `PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n${SMUGGLED}`,
  'an SSH banner': 'SSH-2.0-OpenSSH_9.9\r\n',
  CONNECT: `CONNECT auth.example:443 HTTP/1.1\r\n${HOST}\r\n\r\n`,
  'an empty head': '\r\n\r\n\r\n\r\nGET',
};

/** Incomplete requests. */
const CUT: Record<string, string> = {
  'a head cut off': message('X-Cut: y').slice(0, -3),
  'a body cut off': message(`Content-Length: ${BODY.length + 50}`, '', BODY),
  'a chunk cut off': message('Transfer-Encoding: chunked', '', `ff\r\n${BODY}`),
};

const SHAPES: Record<string, string> = {
  ...LENGTHS,
  ...Object.fromEntries(
    Object.entries(CHUNKS).map(([name, body]) => [`chunks: ${name}`, message('Transfer-Encoding: chunked', '', body)]),
  ),
  ...HEADS,
  ...CUT,
};

/** A random shape, which is sometimes cut off at a random position. */
export function rawShape(random: Random): RawShape {
  const name = random.pick(Object.keys(SHAPES));
  const bytes = Buffer.from(SHAPES[name] as string, 'latin1');
  if (random.chance(0.7)) return { name, bytes };
  return { name: `${name}, cut`, bytes: bytes.subarray(0, 1 + random.below(bytes.length)) };
}
