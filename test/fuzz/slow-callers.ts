import { setTimeout as sleep } from 'node:timers/promises';
import { RawConnection } from '../support/raw-http.js';

const HEAD = 'POST /v2/customer/token HTTP/1.1\r\nHost: auth.example\r\n';

/** The slow part of a request, and the seconds within which the service must close the connection. */
const CALLERS = [
  { name: 'a head', start: HEAD, fragment: 'X: y\r\n', seconds: 13 },
  { name: 'a first line', start: 'POST /v2', fragment: 'x', seconds: 13 },
  { name: 'a body', start: `${HEAD}Content-Length: 10000\r\n\r\n`, fragment: ' ', seconds: 23 },
  { name: 'chunks', start: `${HEAD}Transfer-Encoding: chunked\r\n\r\n`, fragment: '1\r\n \r\n', seconds: 23 },
];

/** Checks that the service closes the connections of slow callers. Takes 23 seconds. */
export async function checkSlowCallers(url: string): Promise<void> {
  await Promise.all(CALLERS.flatMap((caller) => [caller, caller, caller].map((each) => sendSlowly(url, each))));
}

async function sendSlowly(url: string, { name, start, fragment, seconds }: (typeof CALLERS)[number]): Promise<void> {
  const connection = (await RawConnection.open(url)).send(start);
  let isOpen = true;
  const received = connection.received().finally(() => {
    isOpen = false;
  });
  for (let waited = 0; isOpen && waited < seconds * 2; waited++) {
    await sleep(500);
    if (isOpen) connection.send(fragment);
  }
  if (isOpen) {
    connection.abort();
    throw new Error(`a connection with ${name} in slow fragments is still open after ${seconds} s`);
  }
  const text = await received;
  if (text !== '' && !/^HTTP\/1\.1 4\d\d /.test(text))
    throw new Error(`${name} in slow fragments gets the response ${text}`);
}
