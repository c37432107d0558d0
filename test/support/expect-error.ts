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
  /** `undefined` if the error must not have a hint. */
  hint: string | RegExp | undefined;
}

/** Checks the format of an error response and the headers that every response has (protocol §2.11). */
export function expectError(response: TestResponse, { status, error, description, hint }: ExpectedError): void {
  const text = description ?? expect.stringMatching(/\w/);
  expect({ status: response.status, body: response.body }).toEqual({
    status,
    body: {
      error,
      error_description: text,
      ...(hint && { error_hint: typeof hint === 'string' ? hint : expect.stringMatching(hint) }),
      oauth_exception: error,
      exception_description: response.body?.error_description,
      request_id: response.headers.get('x-request-id') ?? 'an X-Request-Id header',
    },
  });
  expect(response.headers.get('content-type')).toMatch(/^application\/json\b/);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  expect(response.cookies).toEqual([]);
}

/** Checks the error response to an invalid parameter. The hint names the parameter. */
export function expectInvalidRequest(response: TestResponse, hint: string | RegExp): void {
  expectError(response, { status: 400, error: 'invalid_request', description: MALFORMED, hint });
}

/** Checks the error response to a code. Its hint is the same for each cause (http/hints). */
export function expectInvalidGrant(response: TestResponse): void {
  const description = 'The client is not authorized to request a token using this method';
  expectError(response, { status: 400, error: 'invalid_grant', description, hint: /^\w+: \w/ });
}

/** A request without `Authorization` gets another challenge and a hint (RFC 6750 §3.1). */
export function expectInvalidToken(response: TestResponse): void {
  const hint = response.body?.error_hint;
  expect([
    undefined,
    'Authorization: missing; send Bearer and the token',
    'Authorization: replace %3A by a colon',
  ]).toContain(hint);
  expectError(response, { status: 401, error: 'invalid_token', description: 'Invalid access token', hint });
  const challenge = hint?.includes('missing') ? 'Bearer' : 'Bearer error="invalid_token"';
  expect(response.headers.get('www-authenticate')).toBe(challenge);
}

/** Checks the error response to a client, resource server or operator whose credentials are not valid. */
export function expectInvalidClient(response: TestResponse): void {
  expectError(response, { status: 401, error: 'invalid_client', hint: undefined });
  expect(response.headers.get('www-authenticate')).toMatch(/^Basic realm="[^"]+"$/);
}

/** Checks the error response to a request beyond a limit. */
export function expectLimited(response: TestResponse, maxSeconds = 60): void {
  const description = 'There were too many requests; try again later';
  expectError(response, {
    status: 429,
    error: 'temporarily_unavailable',
    description,
    hint: /^limit: [a-z_]+$/,
  });
  const wait = Number(response.headers.get('retry-after'));
  expect(wait).toBeGreaterThan(0);
  expect(wait).toBeLessThanOrEqual(maxSeconds);
}

export function expectUnavailable(response: TestResponse): void {
  expectError(response, { status: 503, error: 'temporarily_unavailable', hint: undefined });
  expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
}
