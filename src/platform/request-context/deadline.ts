/** Time for all statements of one request together, so that a caller waits at most 3 s for the database. */
export const REQUEST_DEADLINE_MS = 2_800;

/**
 * The time that the statements of a request have. It begins with the first statement, because a caller may take seconds
 * to send a body. The clock is monotonic.
 */
export class Deadline {
  /** @param startedAt when the first statement was sent, by `performance.now()` */
  constructor(private readonly startedAt = performance.now()) {}

  /** Negative when the time is over. */
  remainingMs(): number {
    return REQUEST_DEADLINE_MS - (performance.now() - this.startedAt);
  }
}
