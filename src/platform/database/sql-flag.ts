/**
 * A column that is 1 if a condition holds, else 0, also if the condition is NULL. A condition alone is no integer on some
 * servers: they return the text `false`, which is true in JavaScript.
 */
export function sqlFlag(condition: string): string {
  return `CASE WHEN ${condition} THEN 1 ELSE 0 END`;
}
