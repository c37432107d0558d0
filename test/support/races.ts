import { expect } from 'vitest';
import { expectInvalidGrant } from './expect-error.js';
import type { TestResponse } from './test-service.js';

export const times = <Result>(count: number, make: (index: number) => Promise<Result>) =>
  Promise.all(Array.from({ length: count }, (_, index) => make(index)));

export const successfulOf = (answers: TestResponse[]) => answers.filter(({ status }) => status === 200);

/** Insists that of the answers to one code one is a token, and the others are refusals as protocol §2.11 writes them. */
export function winnerOf(answers: TestResponse[]): TestResponse {
  const [winner, ...more] = successfulOf(answers);
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(answers.length - 1).fill(400)]);
  for (const answer of answers) if (answer !== winner) expectInvalidGrant(answer);
  expect(more).toEqual([]);
  return winner as TestResponse;
}
