/** The form of the names of grants, extensions, limits and audit events. */
export const SNAKE_CASE_NAME = /^[a-z][a-z0-9_]{0,63}$/;

/** MariaDB ignores these spaces (PAD SPACE), so such texts share a limit. A regular expression takes quadratic time. */
export function withoutTrailingSpaces(text: string): string {
  let end = text.length;
  while (text[end - 1] === ' ') end--;
  return text.slice(0, end);
}

/** Some editors and clients write a byte order mark before UTF-8. A parser of JSON may ignore it (RFC 8259 §8.1). */
export const withoutByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
