import { randomInt } from 'node:crypto';
import { type Hash, keyedHash } from './keyed-hash.js';

/** Parts of the table. Only one part at a time is copied, so a copy needs little memory and little time. */
const SEGMENT_COUNT = 256;
/** The count of unsigned integers of 32 bits. */
const INTEGER_COUNT = 2 ** 32;

/**
 * For each text a safe integer and the moment at which it expires. The table has hashes of 64 bits instead of the
 * texts. Two texts with the same hash share one entry, which has the higher integer and the later moment of both.
 */
export class RevocationTable {
  private readonly key = [randomInt(INTEGER_COUNT), randomInt(INTEGER_COUNT)] as const;
  private readonly segments = Array.from({ length: SEGMENT_COUNT }, () => new Segment());
  /** The number of entries. */
  size = 0;

  constructor(private readonly maxEntries: number) {}

  /** The memory of all entries. */
  get bytes(): number {
    return this.segments.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** The integer of a text, 0 or higher; `undefined` if the table does not have the text. */
  get(text: string): number | undefined {
    if (this.size === 0) return undefined;
    const hash = keyedHash(this.key, text);
    return this.segmentOf(hash).get(hash);
  }

  /**
   * Adds a text, or raises its integer and its moment.
   *
   * @param expiresAt seconds since 1970
   * @returns false if the table is full and does not have the text
   */
  raise(text: string, value: number, expiresAt: number): boolean {
    const hash = keyedHash(this.key, text);
    const segment = this.segmentOf(hash);
    const before = segment.size;
    if (this.size >= this.maxEntries && segment.get(hash) === undefined) return false;
    segment.raise(hash, value, expiresAt);
    this.size += segment.size - before;
    return true;
  }

  /** Deletes the entries that expired before a moment, one part of the table in each step. */
  *deleteExpired(before: number): Generator<void> {
    for (const segment of this.segments) {
      this.size -= segment.deleteExpired(before);
      yield;
    }
  }

  private segmentOf({ high }: Hash): Segment {
    return this.segments[high % SEGMENT_COUNT] as Segment;
  }
}

/** The integers of a slot. `expiresAt` of an empty slot is 0. */
const [LOW, HIGH, VALUE_LOW, VALUE_HIGH, EXPIRES_AT] = [0, 1, 2, 3, 4];
const SLOT_INTEGER_COUNT = 5;
const MIN_SLOTS = 16;
/** Shares of the slots that are used: before the segment grows, and after it was copied. */
const MAX_USED_RATIO = 0.75;
const COPIED_USED_RATIO = 0.6;

/** A hash table with linear probing. */
class Segment {
  size = 0;
  private slots = new Uint32Array(MIN_SLOTS * SLOT_INTEGER_COUNT);

  get bytes(): number {
    return this.slots.byteLength;
  }

  get(hash: Hash): number | undefined {
    const slot = this.find(hash);
    return this.slots[slot + EXPIRES_AT] === 0 ? undefined : this.valueAt(slot);
  }

  raise(hash: Hash, value: number, expiresAt: number): void {
    let slot = this.find(hash);
    if (this.slots[slot + EXPIRES_AT] === 0) {
      if ((this.size + 1) * SLOT_INTEGER_COUNT > this.slots.length * MAX_USED_RATIO) {
        this.copy(0);
        slot = this.find(hash);
      }
      this.slots[slot + LOW] = hash.low;
      this.slots[slot + HIGH] = hash.high;
      this.size += 1;
    }
    const raisedValue = Math.max(this.valueAt(slot), value);
    this.slots[slot + VALUE_LOW] = raisedValue; // the array stores the lower 32 bits
    this.slots[slot + VALUE_HIGH] = raisedValue / INTEGER_COUNT;
    const latest = Math.max(this.slots[slot + EXPIRES_AT] as number, expiresAt, 1);
    this.slots[slot + EXPIRES_AT] = Math.min(latest, INTEGER_COUNT - 1);
  }

  /** Returns the number of deleted entries. */
  deleteExpired(before: number): number {
    const { size, slots } = this;
    for (let slot = 0; slot < slots.length; slot += SLOT_INTEGER_COUNT) {
      const expiresAt = slots[slot + EXPIRES_AT] as number;
      if (expiresAt === 0 || expiresAt >= before) continue;
      this.copy(before);
      break;
    }
    return size - this.size;
  }

  /** Copies the entries that do not expire before a moment into an array of the right size. */
  private copy(before: number): void {
    const { slots } = this;
    const isKept = (slot: number) => slots[slot + EXPIRES_AT] !== 0 && (slots[slot + EXPIRES_AT] as number) >= before;
    this.size = 0;
    for (let slot = 0; slot < slots.length; slot += SLOT_INTEGER_COUNT) if (isKept(slot)) this.size += 1;
    const slotCount = Math.max(MIN_SLOTS, Math.ceil((this.size + 1) / COPIED_USED_RATIO));
    this.slots = new Uint32Array(slotCount * SLOT_INTEGER_COUNT);
    for (let slot = 0; slot < slots.length; slot += SLOT_INTEGER_COUNT) {
      if (!isKept(slot)) continue;
      const target = this.find({ low: slots[slot + LOW] as number, high: slots[slot + HIGH] as number });
      for (let index = 0; index < SLOT_INTEGER_COUNT; index++)
        this.slots[target + index] = slots[slot + index] as number;
    }
  }

  private valueAt(slot: number): number {
    return (this.slots[slot + VALUE_HIGH] as number) * INTEGER_COUNT + (this.slots[slot + VALUE_LOW] as number);
  }

  /** The slot of a hash, or the empty slot for it. */
  private find({ low, high }: Hash): number {
    const { slots } = this;
    const slotCount = slots.length / SLOT_INTEGER_COUNT;
    let slot = Math.floor((low / INTEGER_COUNT) * slotCount) * SLOT_INTEGER_COUNT;
    while (slots[slot + EXPIRES_AT] !== 0 && (slots[slot + LOW] !== low || slots[slot + HIGH] !== high)) {
      slot += SLOT_INTEGER_COUNT;
      if (slot === slots.length) slot = 0;
    }
    return slot;
  }
}
