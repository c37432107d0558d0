import { setImmediate as nextTick } from 'node:timers/promises';

const ITEMS_BETWEEN_PAUSES_COUNT = 100;

/** The event loop serves requests after every 100 items. */
export async function* withPauses<Item>(items: Iterable<Item>): AsyncGenerator<Item, void> {
  let count = 0;
  for (const item of items) {
    yield item;
    if (++count % ITEMS_BETWEEN_PAUSES_COUNT === 0) await nextTick();
  }
}
