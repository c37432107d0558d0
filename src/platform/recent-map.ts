/**
 * At most `max` values, and at least the half that was set or read most recently. When the newer map has half of `max`,
 * it replaces the older one, so a drop costs the same for any number of values. One full `Map` would search for its
 * oldest key behind the holes of earlier drops.
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
