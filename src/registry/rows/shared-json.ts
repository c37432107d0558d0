/** Longer texts are rarely equal. */
const MAX_SHARED_CHARACTERS = 200;
const MAX_SHARED_TEXTS = 1_000;

/**
 * Parses JSON columns. Equal short texts, such as lists of scopes, share one value, which takes less memory. The values
 * are therefore frozen.
 */
export class SharedJson {
  private readonly values = new Map<string, unknown>();

  parse(text: string): unknown {
    const shared = this.values.get(text);
    if (shared !== undefined) return shared;
    const value = frozen(JSON.parse(text));
    if (text.length <= MAX_SHARED_CHARACTERS && this.values.size < MAX_SHARED_TEXTS) this.values.set(text, value);
    return value;
  }
}

function frozen(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) frozen(inner);
  return Object.freeze(value);
}
