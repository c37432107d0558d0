/** Milliseconds since 1970 of a datetime as a raw SELECT returns it: mysql2 makes a Date of it, SQLite has stored a text. */
export function timeOf(value: Date | string): number {
  return value instanceof Date ? value.getTime() : Date.parse(`${value.replace(' ', 'T')}Z`);
}
