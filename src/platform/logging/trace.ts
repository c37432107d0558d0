/** Errors whose messages quote what they were given: a database's rows. */
function quotes(error: Error): boolean {
  return 'errno' in error || 'driverError' in error;
}

/**
 * What an error and its causes say, for the log: without the values that some quote.
 *
 * @param stack whether to tell from where, too
 */
export function traceOf(cause: unknown, stack: boolean): string {
  if (!(cause instanceof Error)) return typeof cause;
  const message = quotes(cause) ? cause.message.replace(/'.*'|".*"|`.*`/s, '…') : cause.message;
  const frames = stack ? (cause.stack?.match(/^ +at .*$/gm) ?? []) : [];
  // a parser's message is made of the text that it could not parse
  const said = cause instanceof SyntaxError ? cause.name : `${cause.name}: ${message}`;
  const own = [said, ...frames].join('\n');
  return cause.cause === undefined ? own : `${own}\ncaused by ${traceOf(cause.cause, stack)}`;
}
