import { open, readFile, rename } from 'node:fs/promises';

/**
 * The conversations, what the service said about their customers, and the cursor, in one file that a change replaces in
 * one step. With a database, use one transaction in its place.
 */
export class ConversationStore {
  #changes = Promise.resolve();

  constructor(path) {
    this.path = path;
  }

  async read() {
    const text = await readFile(this.path, 'utf8').catch((error) => {
      if (error.code !== 'ENOENT') throw error;
    });
    return text ? JSON.parse(text) : { conversations: {}, links: {}, erased: {} };
  }

  /** One change after the other. If the process ends meanwhile, the file has everything of the change, or nothing. */
  update(change) {
    const updated = this.#changes.then(() => this.#replace(change));
    this.#changes = updated.catch(() => undefined);
    return updated;
  }

  /** Your API calls this function with the `sub` of the token. If it rejects, the API responds with 401. */
  async add(conversationId, customerId) {
    await this.update(({ conversations, links, erased }) => {
      // the token was valid a moment ago: another person may hold it, and must not reach the user
      if (links[customerId] || erased[customerId]) throw new Error('the customer was linked or erased');
      conversations[conversationId] = { customerId };
    });
  }

  async #replace(change) {
    const state = await this.read();
    change(state);
    const file = await open(`${this.path}.new`, 'w');
    await file.writeFile(JSON.stringify(state));
    await file.sync();
    await file.close();
    await rename(`${this.path}.new`, this.path);
  }
}

/** Gives each conversation to its owner. The result is the same for repeated events, and in any order. */
export function assignOwners({ conversations, links, erased }) {
  for (const [id, conversation] of Object.entries(conversations)) {
    const owner = links[conversation.customerId] ?? conversation.customerId;
    if (erased[owner] || erased[conversation.customerId]) delete conversations[id];
    else conversation.customerId = owner;
  }
}
