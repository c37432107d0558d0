import type { FeedPosition } from '../../access-token/feed/feed-history.js';
import { FEED_VIEWS, type FeedView } from './feed-view.js';

/** The first word of a cursor. A later release that reads cursors differently uses another version. */
const VERSION = '1';

const CONTENT = new RegExp(`^${VERSION} ([1-9]\\d{0,9}) (0|[1-9]\\d{0,14}) (${FEED_VIEWS.join('|')})$`);

/** The content of a cursor: the view of its caller and the position up to which the caller has read. */
export interface FeedCursor extends FeedPosition {
  view: FeedView;
}

/** A cursor for the part of the feed after a position. Callers must not read its content, which may change. */
export function cursorOf({ history, position, view }: FeedCursor): string {
  return Buffer.from(`${VERSION} ${history} ${position} ${view}`).toString('base64url');
}

/** Reads a cursor; `undefined` if `cursorOf` cannot have returned this text. */
export function parseCursor(text: string): FeedCursor | undefined {
  const [, history, position, view] = CONTENT.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (view === undefined) return undefined;
  const cursor = { history: Number(history), position: Number(position), view: view as FeedView };
  // base64url has several texts for the same bytes, so that the comparison must be with the whole text
  return cursorOf(cursor) === text ? cursor : undefined;
}
