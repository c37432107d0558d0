import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Answer, request } from './service.js';
import { expectInvalidGrant } from './transfers.js';

/** Requests of a race, unless a test says otherwise. */
export const WAYS = 20;
/** Milliseconds in which a service has read the headers of all requests of a race. */
export const OPENING = 200;

export const times = <Result>(count: number, make: (index: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

export const winnersOf = (answers: Answer[]) => answers.filter(({ status }) => status === 200);

/** Insists that of the answers to one code one is a token, and the others are refusals as the contract writes them. */
export function winnerOf(answers: Answer[]): Answer {
  const [winner, ...more] = winnersOf(answers);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(answers.length - 1).fill(400)]);
  for (const answer of answers) if (answer !== winner) expectInvalidGrant(answer);
  expect(more).toEqual([]);
  return winner as Answer;
}

/** Sends the same to all services in turn, so that all of it has come before any of it can be answered. */
export function race(services: { url: string }[], path: string, text: string, ways = WAYS): Promise<Answer[]> {
  const opened = sleep(OPENING);
  return times(ways, (index) => {
    const { url } = services[index % services.length] as { url: string };
    const body = new ReadableStream({
      async start(stream) {
        stream.enqueue(Buffer.from(text.slice(0, 1)));
        await opened;
        stream.enqueue(Buffer.from(text.slice(1)));
        stream.close();
      },
    });
    return request(url + path, { method: 'POST', body, duplex: 'half' });
  });
}
