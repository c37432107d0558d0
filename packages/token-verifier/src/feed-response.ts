import { MalformedResponseError } from './fetch-json.js';

const KINDS = ['jti', 'family', 'client', 'subject'] as const;
export type RevocationKind = (typeof KINDS)[number];

/** An entry of the feed. Times are in milliseconds since 1970. */
export interface FeedEntry {
  /** `undefined` if the verifier does not know the kind or a field, or not what an entry of this kind revokes. */
  kind: RevocationKind | undefined;
  value: string;
  /** Of the kind `client`: ends the tokens that were issued up to this time. Otherwise not used. */
  issuedBefore: number;
  /** Of the kind `subject`: ends the tokens that carry a lower generation. Otherwise not used. */
  generation: number;
  expiresAt: number;
}

export interface FeedPage {
  entries: FeedEntry[];
  cursor: string;
  /** The feed has no further entry now. */
  complete: boolean;
}

const FIELDS = new Set(['kind', 'value', 'generation', 'issued_before', 'expires_at']);
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
  const entry = objectOf(body);
  const { kind, value, generation, issued_before, expires_at } = entry;
  const expiresAt = timeOf(expires_at);
  const issuedBefore = timeOf(issued_before);
  if (typeof kind !== 'string' || typeof value !== 'string' || expiresAt === undefined)
    throw new MalformedResponseError('an entry has no kind, value or expires_at');
  return {
    kind: isUnderstood(entry, issuedBefore) ? (kind as RevocationKind) : undefined,
    value,
    generation: isGeneration(generation) ? generation : 0,
    issuedBefore: issuedBefore ?? 0,
    expiresAt,
  };
}

/**
 * An unknown field may change the meaning of an entry. An entry of the kind `client` or `subject` must have the limit of
 * its kind, which says which tokens it ends, and no other. The other kinds end tokens of any age.
 */
function isUnderstood(entry: Record<string, unknown>, issuedBefore: number | undefined): boolean {
  const { kind, generation, issued_before } = entry;
  if (!Object.keys(entry).every((field) => FIELDS.has(field))) return false;
  if (kind === 'client') return generation === undefined && issuedBefore !== undefined;
  if (kind === 'subject') return issued_before === undefined && isGeneration(generation);
  return (KINDS as readonly unknown[]).includes(kind);
}

function isGeneration(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function timeOf(value: unknown): number | undefined {
  const time = typeof value === 'string' && TIME.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) throw new MalformedResponseError('an object is missing');
  return value as Record<string, unknown>;
}
