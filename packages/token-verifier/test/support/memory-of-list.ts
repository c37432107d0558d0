/**
 * Prints the memory of an empty list of revocations and of a list of COUNT revocations: `node --expose-gc … COUNT
 * PAGES`. The array buffers are measured after each page, and the garbage of this page counts.
 */
import { randomUUID } from 'node:crypto';
import type { FeedEntry } from '../../src/feed-response.js';
import { RevocationList } from '../../src/revocation-list.js';

/** In a smaller list, the garbage of one page is too large a part. */
const MIN_MEASURED_RATIO = 0.5;
const [entryCount, pageCount] = process.argv.slice(2).map(Number) as [number, number];
const collectGarbage = () => globalThis.gc?.();

function entry(): FeedEntry {
  return { kind: 'subject', value: randomUUID(), limit: Date.now(), expiresAt: Date.now() + 86_400_000 };
}

function used(): { heapUsed: number; arrayBuffers: number; rss: number } {
  collectGarbage();
  return process.memoryUsage();
}

new RevocationList(1).add([entry()]); // The heap then has what the code itself needs.
const before = used();
const list = new RevocationList(entryCount);
const empty = used();
let maxBytesPerEntry = 0;
while (list.size < entryCount) {
  list.add(Array.from({ length: entryCount / pageCount }, entry));
  const bytes = process.memoryUsage().arrayBuffers - before.arrayBuffers;
  if (list.size >= entryCount * MIN_MEASURED_RATIO) maxBytesPerEntry = Math.max(maxBytesPerEntry, bytes / list.size);
  collectGarbage();
}
const full = used();
const total = ({ heapUsed, arrayBuffers }: typeof full) =>
  heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers;
process.stdout.write(
  JSON.stringify({
    emptyBytes: total(empty),
    size: list.size,
    bytesPerEntry: total(full) / list.size,
    maxBytesPerEntry,
    rssBytesPerEntry: (full.rss - before.rss) / list.size,
  }),
);
