import { MalformedResponseError } from './fetch-json.js';

/** An entry of the feed. */
export interface FeedEntry {
  kind: string;
  value: string;
  /** Ends the tokens whose number is lower. `undefined` if the verifier does not know the kind or a field. */
  limit: number | undefined;
  /** Milliseconds since 1970. */
  expiresAt: number;
}

export interface FeedPage {
  entries: FeedEntry[];
  cursor: string;
  /** The feed has no further entry now. */
  complete: boolean;
}

/**
 * For each kind, the only field that an entry may have in addition to `kind`, `value` and `expires_at`, and the limit
 * that follows from this field. The number of a token is its `ep`, `gen` or `iat`, or 0 for the kind `token`.
 */
const LIMITS = new Map<string, [field: string, limitOf: (value: unknown) => number | undefined]>([
  ['session', ['epoch', countOf]],
  ['subject', ['generation', countOf]],
  ['client', ['issued_before', secondAfter]],
  ['organization', ['issued_before', secondAfter]],
  ['token', ['issued_before', () => 1]],
]);
const MAX_CURSOR_CHARACTERS = 4_096;
/** RFC 3339 with any number of decimals. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** @throws MalformedResponseError if the response does not have the form of the feed */
export function readFeedPage(body: unknown): FeedPage {
  const { revocations, cursor, complete } = objectOf(body);
  if (!Array.isArray(revocations)) throw new MalformedResponseError('revocations is not an array');
  if (typeof cursor !== 'string' || cursor.length > MAX_CURSOR_CHARACTERS)
    throw new MalformedResponseError('cursor is not a short string');
  if (typeof complete !== 'boolean') throw new MalformedResponseError('complete is not a boolean');
  return { entries: revocations.map(readEntry), cursor, complete };
}

function readEntry(body: unknown): FeedEntry {
  const { kind, value, expires_at, ...fields } = objectOf(body);
  const expiresAt = timeOf(expires_at);
  if (typeof kind !== 'string' || typeof value !== 'string' || expiresAt === undefined)
    throw new MalformedResponseError('an entry has no kind, value or expires_at');
  return { kind, value, limit: readLimit(kind, fields), expiresAt };
}

/** An unknown field may change the meaning of an entry. */
function readLimit(kind: string, fields: Record<string, unknown>): number | undefined {
  const [field = '', limitOf] = LIMITS.get(kind) ?? [];
  return Object.keys(fields).every((name) => name === field) ? limitOf?.(fields[field]) : undefined;
}

function countOf(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : undefined;
}

function secondAfter(value: unknown): number | undefined {
  const time = timeOf(value);
  return time === undefined ? undefined : Math.floor(time / 1000) + 1;
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' && TIME.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new MalformedResponseError('an object is missing');
  return value as Record<string, unknown>;
}
