/**
 * Values by key: at most `max` of them, and at least the half of them that was set or read last.
 *
 * The values are in two maps. When the newer map has half of them, it becomes the older one, whose values are dropped
 * together. So a drop costs the same, however many values there are. One full `Map` that drops its oldest key for each
 * new one would search this key behind the holes that earlier drops have left.
 */
export class RecentMap<Value extends object> {
  private newer = new Map<string, Value>();
  private older = new Map<string, Value>();

  constructor(private readonly max: number) {}

  get size(): number {
    return this.newer.size + this.older.size;
  }

  get(key: string): Value | undefined {
    const newer = this.newer.get(key);
    if (newer) return newer;
    const older = this.older.get(key);
    if (older) this.set(key, older);
    return older;
  }

  set(key: string, value: Value): void {
    if (this.newer.size >= this.max / 2 && !this.newer.has(key)) {
      this.older = this.newer;
      this.newer = new Map();
    }
    this.older.delete(key);
    this.newer.set(key, value);
  }

  delete(key: string): void {
    this.newer.delete(key);
    this.older.delete(key);
  }
}
