import { describe, expect, it } from 'vitest';
import { OAuthError } from '../../src/oauth/oauth-error.js';

const MALFORMED =
  'The request is missing a required parameter, includes an invalid parameter value, includes a parameter more than once, or is otherwise malformed.';
const NOT_AUTHORIZED = 'The client is not authorized to request a token using this method';
const OTHER_DESCRIPTION = expect.stringMatching(/^[A-Z].*\w$/);

describe('protocol §2.12: the error responses', () => {
  it.each<[OAuthError, string, number, unknown, Record<string, string>]>([
    [OAuthError.invalidRequest('x: required'), 'invalid_request', 400, MALFORMED, {}],
    [OAuthError.invalidMessage(), 'invalid_request', 400, 'Invalid message', {}],
    [
      OAuthError.invalidToken('expired'),
      'invalid_token',
      401,
      'Invalid access token',
      { 'WWW-Authenticate': 'Bearer error="invalid_token"' },
    ],
    [OAuthError.invalidGrant('used'), 'invalid_grant', 400, NOT_AUTHORIZED, {}],
    [OAuthError.unauthorizedClient('grant_type: no'), 'unauthorized_client', 400, NOT_AUTHORIZED, {}],
    [OAuthError.unsupportedGrantType(), 'unsupported_grant_type', 400, OTHER_DESCRIPTION, {}],
    [
      OAuthError.insufficientScope('customers:own'),
      'insufficient_scope',
      403,
      OTHER_DESCRIPTION,
      { 'WWW-Authenticate': expect.stringMatching(/^Bearer error="insufficient_scope"/) as unknown as string },
    ],
    [OAuthError.notFound(), 'not_found', 404, OTHER_DESCRIPTION, {}],
    [OAuthError.methodNotAllowed(), 'method_not_allowed', 405, OTHER_DESCRIPTION, {}],
    [OAuthError.payloadTooLarge(), 'payload_too_large', 413, OTHER_DESCRIPTION, { Connection: 'close' }],
    [
      OAuthError.unavailable(),
      'temporarily_unavailable',
      503,
      OTHER_DESCRIPTION,
      { 'Retry-After': expect.stringMatching(/^\d+$/) as unknown as string },
    ],
    [OAuthError.serverError(new Error('x')), 'server_error', 500, OTHER_DESCRIPTION, {}],
  ])('%s has its status, description and headers', (error, code, status, description, headers) => {
    expect(error).toMatchObject({ code, status });
    expect(error.headers).toEqual(headers);
    expect(error.toBody('request-id')).toMatchObject({
      error: code,
      error_description: description,
      oauth_exception: code,
      exception_description: error.description,
      request_id: 'request-id',
    });
  });

  it.each([
    OAuthError.invalidToken('MARKED'),
    OAuthError.invalidGrant('MARKED'),
    OAuthError.serverError(new Error('MARKED')),
    OAuthError.unavailable(new Error('MARKED')),
  ])('the response does not contain the reason: %s', (error) => {
    const body = error.toBody('request-id');
    expect(body).not.toHaveProperty('error_hint');
    expect(JSON.stringify([body, error.headers])).not.toContain('MARKED');
  });

  it('the response contains the hint, and only the log contains the reason', () => {
    const error = OAuthError.invalidRequest('entity_id: unknown', 'MARKED: of another organization');
    expect(error.toBody('request-id').error_hint).toBe('entity_id: unknown');
    expect(JSON.stringify(error.toBody('request-id'))).not.toContain('MARKED');
    expect(error.message).toContain('MARKED');
  });
});
