import { v7 } from 'uuid';

/** The text of a UUID of any version (RFC 9562 §4), in lower case only. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * A UUIDv7 (RFC 9562 §5.7). Because these ids grow with time, the database inserts rows at the end of a table. An
 * INSERT therefore reads no page, even in a large table.
 *
 * @param now milliseconds since 1970
 */
export const uuidv7 = (now: number): string => v7({ msecs: now });
