const SECOND_MS = 1000;

/**
 * Formats times like `toISOString`, which would take most of the time of a page. Times in a row are often of the same
 * second. The text of a second is made once. The times are milliseconds from 1970 on.
 */
export function isoFormatter(): (ms: number) => string {
  let [second, text] = [Number.NaN, ''];
  return (ms) => {
    const fraction = ms % SECOND_MS;
    if (ms - fraction !== second) {
      second = ms - fraction;
      text = new Date(second).toISOString().slice(0, -4);
    }
    return `${text}${String(fraction).padStart(3, '0')}Z`;
  };
}
