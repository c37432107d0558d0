import { expect } from 'vitest';
import { expectInvalidGrant } from './expect-error.js';
import type { TestResponse } from './test-service.js';

export const times = <Result>(count: number, make: (index: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

export const successfulOf = (responses: TestResponse[]) => responses.filter(({ status }) => status === 200);

/** Checks that one response to a code has a token and all others are error responses (protocol §2.11). */
export function winnerOf(responses: TestResponse[]): TestResponse {
  const [winner, ...more] = successfulOf(responses);
  expect(responses.map(({ status }) => status).sort()).toEqual([200, ...Array(responses.length - 1).fill(400)]);
  for (const response of responses) if (response !== winner) expectInvalidGrant(response);
  expect(more).toEqual([]);
  return winner as TestResponse;
}
