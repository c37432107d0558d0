/** Errors whose messages quote what they were given: a database's rows, a parser's text. */
function quotes(error: Error): boolean {
  return error instanceof SyntaxError || 'errno' in error || 'driverError' in error;
}

/**
 * What an error and its causes say, for the log: without the values that some quote.
 *
 * @param stack whether to tell from where, too
 */
export function traceOf(cause: unknown, stack: boolean): string {
  if (!(cause instanceof Error)) return typeof cause;
  const message = quotes(cause) ? cause.message.replace(/(['"]).*\1/s, '$1…$1') : cause.message;
  const frames = stack ? (cause.stack?.match(/^ +at .*$/gm) ?? []) : [];
  const own = [`${cause.name}: ${message}`, ...frames].join('\n');
  return cause.cause === undefined ? own : `${own}\ncaused by ${traceOf(cause.cause, stack)}`;
}
