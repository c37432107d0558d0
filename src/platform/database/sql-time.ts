/** Milliseconds since 1970 of a datetime in a raw SELECT: mysql2 returns a Date, SQLite returns the stored text. */
export function timeOf(value: Date | string): number {
  return value instanceof Date ? value.getTime() : Date.parse(`${value.replace(' ', 'T')}Z`);
}
