/** A value that a column of this service can hold. */
export type SqlValue = string | number | boolean | Date | null;
