// @ts-check
/**
 * Things that one operation at a time uses: an operation takes a random one and puts it back. So no operation sees the
 * effects of another one that is in progress.
 *
 * @template Item
 */
export class Pool {
  /** @type {Item[]} */
  #items = [];
  #limit;

  /** @param {number} limit a full pool forgets a random item for each item that is put */
  constructor(limit) {
    this.#limit = limit;
  }

  /** @returns {Item | undefined} */
  take() {
    if (this.#items.length === 0) return undefined;
    const index = Math.floor(Math.random() * this.#items.length);
    const item = this.#items[index];
    const last = /** @type {Item} */ (this.#items.pop());
    if (index < this.#items.length) this.#items[index] = last;
    return item;
  }

  /** @param {Item} item */
  put(item) {
    if (this.#items.length >= this.#limit) this.take();
    this.#items.push(item);
  }
}
