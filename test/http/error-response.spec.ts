import { describe, expect, it } from 'vitest';
import { type ErrorResponse, violationOfErrorResponse } from '../fuzz/error-response.js';

const BODY = {
  error: 'invalid_request',
  error_description: 'why',
  error_hint: 'ticket: required',
  oauth_exception: 'invalid_request',
  exception_description: 'why',
  request_id: 'a-request',
};
const HEADERS: Record<string, string> = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-request-id': 'a-request',
};

function errorResponse(body: object = BODY, headers = HEADERS, more: Partial<ErrorResponse> = {}): ErrorResponse {
  return { status: 400, text: JSON.stringify(body), cookies: [], header: (name) => headers[name], ...more };
}

describe('protocol §2.11: the check of error responses', () => {
  it('accepts an error response that follows the protocol', () => {
    expect(violationOfErrorResponse(errorResponse())).toBeUndefined();
    const { error_hint: _hint, ...invalidToken } = {
      ...BODY,
      error: 'invalid_token',
      oauth_exception: 'invalid_token',
    };
    const headers = { ...HEADERS, 'www-authenticate': 'Bearer error="invalid_token"' };
    expect(violationOfErrorResponse(errorResponse(invalidToken, headers, { status: 401 }))).toBeUndefined();
  });

  it.each<[string, ErrorResponse]>([
    ['an error with the field stack', errorResponse({ ...BODY, stack: 'at …' })],
    ['invalid_request with 404', errorResponse(BODY, HEADERS, { status: 404 })],
    ['invalid_nothing with 400', errorResponse({ ...BODY, error: 'invalid_nothing' })],
    ['oauth_exception is not error', errorResponse({ ...BODY, oauth_exception: 'invalid_grant' })],
    ['no error_description', errorResponse({ ...BODY, error_description: undefined })],
    ['two descriptions', errorResponse({ ...BODY, exception_description: 'because' })],
    ['request_id is not X-Request-Id', errorResponse({ ...BODY, request_id: 'another' })],
    ['an error response that may be stored', errorResponse(BODY, { ...HEADERS, 'cache-control': 'max-age=60' })],
    ['401 without www-authenticate', errorResponse(BODY, HEADERS, { status: 401 })],
    ['405 without allow', errorResponse(BODY, HEADERS, { status: 405 })],
    ['429 without retry-after', errorResponse(BODY, HEADERS, { status: 429 })],
    ['an error response that gives an identity', errorResponse(BODY, HEADERS, { cookies: ['__svc_cid=x; Path=/'] })],
  ])('reports the violation: %s', (violation, response) => {
    expect(violationOfErrorResponse(response)).toBe(violation);
  });
});
