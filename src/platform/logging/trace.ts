/** Whether the message of an error can quote values of database rows. */
function quotesRows(error: Error): boolean {
  return 'errno' in error || 'driverError' in error;
}

/**
 * The messages of an error and of its causes, for the log, without the values that some messages quote.
 *
 * @param stack whether to add the stack frames
 */
export function traceOf(cause: unknown, stack: boolean): string {
  if (!(cause instanceof Error)) return typeof cause;
  const message = quotesRows(cause) ? cause.message.replace(/'.*'|".*"|`.*`/s, '…') : cause.message;
  const frames = stack ? (cause.stack?.match(/^ +at .*$/gm) ?? []) : [];
  // the message of a parser quotes the text that it could not parse
  const summary = cause instanceof SyntaxError ? cause.name : `${cause.name}: ${message}`;
  const own = [summary, ...frames].join('\n');
  return cause.cause === undefined ? own : `${own}\ncaused by ${traceOf(cause.cause, stack)}`;
}
