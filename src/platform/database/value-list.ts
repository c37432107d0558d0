/**
 * The numbers of values that a list in a statement can have. They are few, because each connection prepares each text.
 */
const LIST_SIZES = [1, 8, 64, 500];

/** The maximum number of values in one list. */
export const MAX_LIST_VALUES = Math.max(...LIST_SIZES);

/** Splits values into portions, by default of the size that fits into one list. */
export function* portionsOf<Value>(values: readonly Value[], size = MAX_LIST_VALUES): Generator<Value[], void> {
  for (let at = 0; at < values.length; at += size) yield values.slice(at, at + size);
}

/**
 * Fills values up to the next size of a list by repeating the last one, so that a statement has one text for each size.
 *
 * @param values at least one, and at most MAX_LIST_VALUES
 */
export function valueList<Value>(values: readonly Value[]): Value[] {
  const size = LIST_SIZES.find((each) => each >= values.length);
  if (size === undefined || values.length === 0) throw new Error(`a list cannot have ${values.length} values`);
  return [...values, ...Array<Value>(size - values.length).fill(values.at(-1) as Value)];
}

/** The placeholders of a list that `valueList` has made. */
export function placeholdersFor(list: readonly unknown[]): string {
  if (!LIST_SIZES.includes(list.length)) throw new Error('a list of this length would add a text to the statement');
  return list.map(() => '?').join();
}
