/** Milliseconds since 1970 of a datetime in a raw SELECT: mysql2 returns a Date, SQLite returns the stored text. */
export function timeOf(value: Date | string): number {
  return value instanceof Date ? value.getTime() : Date.parse(`${value.replace(' ', 'T')}Z`);
}

/** A row for JSON: the times in `columns` become texts in ISO 8601, which are equal on all databases. */
export function withIsoTimes<Row extends object>(row: Row, columns: (keyof Row & string)[]): Record<string, unknown> {
  const isoTime = (value: unknown) => (value === null ? null : new Date(timeOf(value as Date | string)).toISOString());
  return { ...row, ...Object.fromEntries(columns.map((column) => [column, isoTime(row[column])])) };
}
