import { EventEmitter } from 'node:events';

/** A position of one history of the feed. Positions of different histories cannot be compared. */
export interface FeedPosition {
  history: number;
  position: number;
}

export function isSamePosition(one: FeedPosition, other: FeedPosition | undefined): boolean {
  return one.history === other?.history && one.position === other.position;
}

/** One lower read may come from a node of a cluster that does not have the last transactions yet. */
const MIN_LOWER_READS = 2;

/** The state of the feed, as this process last read or wrote it. The event `change` reports new positions. */
export class FeedState extends EventEmitter<{ change: [] }> {
  /** The highest position; `undefined` before the first read. */
  highest: FeedPosition | undefined;
  /** Whether more revocations waited than one publication can have. */
  hasBacklog = true;
  private lowerReads = 0;

  /** Whether the last read had a lower position than before, in the same history. */
  get isLower(): boolean {
    return this.lowerReads > 0;
  }

  /** Whether several reads had a lower position: the database was restored from a backup. */
  get isRestored(): boolean {
    return this.lowerReads >= MIN_LOWER_READS;
  }

  /** Compares a position that was read with the known one. Call `moveTo` afterwards, unless the position is lower. */
  compare({ history, position }: FeedPosition): void {
    const isLower = this.highest?.history === history && this.highest.position > position;
    this.lowerReads = isLower ? this.lowerReads + 1 : 0;
  }

  /** @returns whether the state has changed */
  moveTo({ history, position }: FeedPosition, hasBacklog: boolean): boolean {
    if (isSamePosition({ history, position }, this.highest) && hasBacklog === this.hasBacklog) return false;
    this.highest = { history, position };
    this.hasBacklog = hasBacklog;
    this.emit('change');
    return true;
  }
}
