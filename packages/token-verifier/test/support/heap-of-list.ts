/** Prints the bytes of the heap that a list of COUNT revocations takes: `node --expose-gc … COUNT`. */
import { randomUUID } from 'node:crypto';
import { readFeedPage } from '../../src/feed-response.js';
import { RevocationList } from '../../src/revocation-list.js';

const entryCount = Number(process.argv[2]);
const KINDS = ['jti', 'family', 'client', 'subject'];

/** A page of the feed, as the verifier reads it. */
function page(pageEntries: number) {
  const entries = Array.from({ length: pageEntries }, (_, index) => {
    const kind = KINDS[index % KINDS.length];
    const rule = kind === 'subject' ? { generation: 2 } : { issued_before: '9999-12-31T00:00:00.000Z' };
    return { kind, value: randomUUID(), ...rule, expires_at: '2027-02-01T00:00:00.000Z' };
  });
  return readFeedPage(JSON.parse(JSON.stringify({ revocations: entries, cursor: 'x', complete: true })));
}

function heapBytes(): number {
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}

page(100); // The heap then has what the code itself needs.
const before = heapBytes();
const list = new RevocationList(entryCount);
for (let rest = entryCount; rest > 0; rest -= 1_000) list.add(page(Math.min(rest, 1_000)).entries, Date.now());
const bytes = heapBytes() - before;
process.stdout.write(JSON.stringify({ size: list.size, bytes }));
