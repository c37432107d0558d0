/** The form of the names of grants, extensions, limits and audit events. */
export const SNAKE_CASE_NAME = /^[a-z][a-z0-9_]{0,63}$/;

/**
 * A text without the spaces at its end. MariaDB ignores them when it compares texts (PAD SPACE), so texts that differ
 * only in these spaces must share one limit. A loop, because a regular expression takes quadratic time here.
 */
export function withoutTrailingSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === ' ') end--;
  return text.slice(0, end);
}
