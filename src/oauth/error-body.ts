import { IsIn, IsOptional, IsString } from 'class-validator';

/** The error codes of RFC 6749 §5.2, RFC 6750 §3.1 and protocol §2.12. */
const ERROR_CODES = [
  'invalid_request',
  'invalid_token',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'insufficient_scope',
  'invalid_client',
  'not_found',
  'method_not_allowed',
  'conflict',
  'identity_conflict',
  'payload_too_large',
  'temporarily_unavailable',
  'server_error',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

/** The body of every error response (protocol §2.11). */
export class ErrorBody {
  @IsIn(ERROR_CODES)
  error: ErrorCode;

  @IsString()
  error_description: string;

  /** Names the parameter and the rule. */
  @IsOptional()
  @IsString()
  error_hint?: string;

  @IsIn(ERROR_CODES)
  oauth_exception: ErrorCode;

  @IsString()
  exception_description: string;

  @IsString()
  request_id: string;
}
