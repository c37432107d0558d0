import type { FeedPosition } from '../../feed/feed-state.js';
import type { PublishedRevocation } from '../../feed/revocation-pages.js';
import { decodeCursor, encodeCursor } from '../../oauth/pages.js';

/** The part of the revocation feed that a caller sees. The operator sees everything. */
export const FEED_VIEWS = ['all', 'customer-api', 'agent-api', 'none'] as const;
export type FeedView = (typeof FEED_VIEWS)[number];

/** Customer tokens also descend from agents' tokens, so that `customer-api` includes what `agent-api` sees. */
export function viewOf(audiences: string[]): FeedView {
  if (audiences.includes('customer-api')) return 'customer-api';
  return audiences.includes('agent-api') ? 'agent-api' : 'none';
}

export function isVisibleIn(view: FeedView, { audience }: PublishedRevocation): boolean {
  if (view === 'none') return false;
  return view !== 'agent-api' || audience !== 'customer-api';
}

const POSITION_WORDS = '([1-9]\\d{0,9}) (0|[1-9]\\d{0,14})';
const EVENT_CURSOR = new RegExp(`^${POSITION_WORDS}$`);
const REVOCATION_CURSOR = new RegExp(`^${POSITION_WORDS} (${FEED_VIEWS.join('|')})$`);

interface RevocationCursor extends FeedPosition {
  view: FeedView;
}

export function revocationCursorOf({ history, position, view }: RevocationCursor): string {
  return encodeCursor(history, position, view);
}

/** `undefined` if `revocationCursorOf` cannot have returned this text. */
export function parseRevocationCursor(text: string): RevocationCursor | undefined {
  const [, history, position, view] = wordsOf(text, REVOCATION_CURSOR);
  if (view === undefined) return undefined;
  return { history: Number(history), position: Number(position), view: view as FeedView };
}

/** The cursor names no organizations, because a caller may get further ones at any time. */
export function eventCursorOf({ history, position }: FeedPosition): string {
  return encodeCursor(history, position);
}

/** `undefined` if `eventCursorOf` cannot have returned this text. */
export function parseEventCursor(text: string): FeedPosition | undefined {
  const [, history, position] = wordsOf(text, EVENT_CURSOR);
  return position === undefined ? undefined : { history: Number(history), position: Number(position) };
}

function wordsOf(text: string, form: RegExp): string[] {
  return form.exec(decodeCursor(text)?.join(' ') ?? '') ?? [];
}
