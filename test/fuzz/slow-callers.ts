import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const HEAD = 'POST /v2/customer/token HTTP/1.1\r\nHost: auth.example\r\n';

/** What dribbles, and the seconds after which the service must have had enough of it. */
const CALLERS = [
  { name: 'a head', start: HEAD, drop: 'X: y\r\n', seconds: 13 },
  { name: 'a first line', start: 'POST /v2', drop: 'x', seconds: 13 },
  { name: 'a body', start: `${HEAD}Content-Length: 10000\r\n\r\n`, drop: ' ', seconds: 23 },
  { name: 'chunks', start: `${HEAD}Transfer-Encoding: chunked\r\n\r\n`, drop: '1\r\n \r\n', seconds: 23 },
];

/** Callers that take their time over a request are ended, with 408 (attack 36). Takes 23 seconds. */
export async function checkSlowCallers(url: string): Promise<void> {
  await Promise.all(CALLERS.flatMap((caller) => [caller, caller, caller].map((each) => dribble(new URL(url), each))));
}

async function dribble(url: URL, { name, start, drop, seconds }: (typeof CALLERS)[number]): Promise<void> {
  const socket = connect(Number(url.port), url.hostname);
  let text = '';
  let isOpen = true;
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isOpen = false;
  });
  socket.write(start);
  for (let waited = 0; isOpen && waited < seconds * 2; waited++) {
    await sleep(500);
    if (isOpen) socket.write(drop);
  }
  socket.destroy();
  if (isOpen) throw new Error(`${name} that dribbles is still open after ${seconds} s`);
  if (text !== '' && !/^HTTP\/1\.1 4\d\d /.test(text))
    throw new Error(`${name} that dribbles is answered with ${text}`);
}
