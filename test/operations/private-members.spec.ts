import { expect, it } from 'vitest';
import { ExecutionContextHost } from '../../src/platform/private-members.js';

it('the context of a guard of Nest has the request', () => {
  const request = {};
  expect(new ExecutionContextHost([request]).switchToHttp().getRequest()).toBe(request);
});
