/** Few, because each connection prepares each text. */
const LIST_SIZES = [1, 8, 64, 500];

export const MAX_LIST_VALUES = Math.max(...LIST_SIZES);

export function* portionsOf<Value>(values: readonly Value[], size = MAX_LIST_VALUES): Generator<Value[], void> {
  for (let at = 0; at < values.length; at += size) yield values.slice(at, at + size);
}

/** Repeats the last value up to the next size, so that a statement has one text for each size. */
export function valueList<Value>(values: readonly Value[]): Value[] {
  const length = LIST_SIZES.find((size) => size >= values.length);
  if (length === undefined || values.length === 0) throw new Error(`a list cannot have ${values.length} values`);
  return [...values, ...Array<Value>(length - values.length).fill(values.at(-1) as Value)];
}

export function placeholdersFor(list: readonly unknown[]): string {
  if (!LIST_SIZES.includes(list.length)) throw new Error('a list of this length would add a text to the statement');
  return list.map(() => '?').join();
}
