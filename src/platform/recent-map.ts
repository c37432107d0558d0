/**
 * Values by key: at most `max` values, and at least the half that was set or read most recently.
 *
 * The values are in two maps. When the newer map contains half of `max`, it replaces the older map, whose values are
 * all dropped together. The cost of a drop therefore does not depend on the number of values. If one full `Map` dropped
 * its oldest key for each new key, it would have to search for this key behind the holes of earlier drops.
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
