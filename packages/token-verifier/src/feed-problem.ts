import { AssertionError } from './feed-request.js';
import { MalformedResponseError, StatusError } from './fetch-json.js';
import type { SkippedReason } from './revocation-list.js';

/** What the last request to the feed ended with, or why the list does not apply all entries. */
export type FeedProblem =
  | 'unreachable'
  | 'rejected_credentials'
  | 'no_assertion'
  | 'error_response'
  | 'malformed_response'
  | 'clock_set_back'
  | SkippedReason;

export function problemOf(error: unknown): FeedProblem {
  if (error instanceof MalformedResponseError) return 'malformed_response';
  if (error instanceof AssertionError) return 'no_assertion';
  if (!(error instanceof StatusError)) return 'unreachable';
  return error.status === 401 || error.status === 403 ? 'rejected_credentials' : 'error_response';
}
