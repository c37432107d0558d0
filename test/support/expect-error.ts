import { expect } from 'vitest';
import type { TestResponse } from './test-service.js';

/** The texts of protocol §2.12. */
export const MALFORMED =
  'The request is missing a required parameter, includes an invalid parameter value, includes a parameter more than once, or is otherwise malformed.';
export const INVALID_MESSAGE = 'Invalid message';

interface ExpectedError {
  status: number;
  error: string;
  description?: string;
  /** `undefined` where an error must not have one. */
  hint: string | RegExp | undefined;
}

/** Insists on the one shape of an error, with the headers that every answer has (protocol §2.11). */
export function expectError(answer: TestResponse, { status, error, description, hint }: ExpectedError): void {
  const text = description ?? expect.stringMatching(/\w/);
  expect({ status: answer.status, body: answer.body }).toEqual({
    status,
    body: {
      error,
      error_description: text,
      ...(hint && { error_hint: typeof hint === 'string' ? hint : expect.stringMatching(hint) }),
      oauth_exception: error,
      exception_description: answer.body?.error_description,
      request_id: answer.headers.get('x-request-id') ?? 'an X-Request-Id header',
    },
  });
  expect(answer.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  expect(answer.cookies).toEqual([]);
}

/** The refusal of a faulty parameter, with the hint that names it. */
export function expectInvalidRequest(answer: TestResponse, hint: string | RegExp): void {
  expectError(answer, { status: 400, error: 'invalid_request', description: MALFORMED, hint });
}

/** The refusal of a code, which does not tell what is wrong with it. */
export function expectInvalidGrant(answer: TestResponse): void {
  const description = 'The client is not authorized to request a token using this method';
  expectError(answer, { status: 400, error: 'invalid_grant', description, hint: undefined });
}

export function expectInvalidToken(answer: TestResponse): void {
  expectError(answer, { status: 401, error: 'invalid_token', description: 'Invalid access token', hint: undefined });
  expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
}
