import { IsIn, IsOptional, IsString } from 'class-validator';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';

/** The error codes of a grant whose client polls (RFC 8628 §3.5). */
export const POLLING_CODES = ['authorization_pending', 'slow_down', 'expired_token', 'access_denied'] as const;

/** The error codes of RFC 6749 §5.2, RFC 6750 §3.1, RFC 8628 §3.5 and protocol §2.12. */
const ERROR_CODES = [
  'invalid_request',
  'invalid_token',
  'invalid_grant',
  'unauthorized_client',
  'invalid_scope',
  'unsupported_grant_type',
  'insufficient_scope',
  'invalid_client',
  'not_found',
  'method_not_allowed',
  'conflict',
  'precondition_failed',
  'identity_conflict',
  'payload_too_large',
  'temporarily_unavailable',
  'server_error',
  ...POLLING_CODES,
] as const;

/** The code of an error response, one of `ERROR_CODES`. */
export type ErrorCode = (typeof ERROR_CODES)[number];

/** The description of most errors, word for word from protocol §2.12. */
export const MALFORMED =
  'The request is missing a required parameter, includes an invalid parameter value, includes a parameter more than once, or is otherwise malformed.';

/** The body of every error response (protocol §2.11). */
export class ErrorBody {
  @IsIn(ERROR_CODES)
  @ApiProperty('The code of the error (RFC 6749 §5.2).', 'invalid_request')
  error!: ErrorCode;

  @IsString()
  @ApiProperty('What is wrong, in one sentence. The text of a code never changes.', MALFORMED)
  error_description!: string;

  @IsOptional()
  @IsString()
  @ApiProperty('The parameter and the rule that it breaks. Never a value of the request.', 'client_id: required')
  error_hint?: string;

  @IsIn(ERROR_CODES)
  @ApiProperty('The same as `error`, for existing browser SDKs.', 'invalid_request')
  oauth_exception!: ErrorCode;

  @IsString()
  @ApiProperty('The same as `error_description`, for existing browser SDKs.', MALFORMED)
  exception_description!: string;

  @IsString()
  @ApiProperty(
    'The id of the request, as in the header `X-Request-Id`. Name it when you report an error.',
    EXAMPLE.requestId,
  )
  request_id!: string;
}
