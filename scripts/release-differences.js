// @ts-check
/** Compares the promises of two releases, one per line (docs/releases/). */

/**
 * The lines that differ, and the kind of version that each of them needs (docs/decisions/0018). A request that lacks a
 * newly required field was correct before, so such a field needs a major version, as a line that is gone does.
 * @param {string[]} before @param {string[]} after
 */
export function differences(before, after) {
  const gone = missingIn(after, before).map((line) => ({ kind: 'major', text: `gone: ${line}` }));
  const added = missingIn(before, after).map((line) => ({
    kind: / (body|query|header) .* required$/.test(line) ? 'major' : 'minor',
    text: `new: ${line}`,
  }));
  return [...gone, ...added];
}

/** The part of the version that was raised between two releases. @param {string} before @param {string} after */
export function raised(before, after) {
  const [was, is] = [numbersOf(before), numbersOf(after)];
  return /** @type {const} */ (['major', 'minor', 'patch'])[was.findIndex((number, place) => number !== is[place])];
}

/** Sorts from the oldest release to the newest. @param {string} one @param {string} other */
export function byVersion(one, other) {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  const place = left.findIndex((number, index) => number !== right[index]);
  return place < 0 ? 0 : (left[place] ?? 0) - (right[place] ?? 0);
}

/** @param {string} version */
function numbersOf(version) {
  return version.split('.').map(Number);
}

/** @param {string[]} lines @param {string[]} others */
function missingIn(lines, others) {
  const known = new Set(lines);
  return others.filter((line) => !known.has(line));
}
