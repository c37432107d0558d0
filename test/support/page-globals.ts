import { afterEach, beforeEach, vi } from 'vitest';

/** Gives each test the globals of a web page that the examples for callers use, without locks. */
export function stubPageGlobals(): void {
  beforeEach(() => {
    const items = new Map<string, string>();
    vi.stubGlobal('navigator', {});
    vi.stubGlobal('localStorage', {
      getItem: (name: string) => items.get(name) ?? null,
      setItem: (name: string, value: string) => void items.set(name, value),
      removeItem: (name: string) => void items.delete(name),
    });
  });
  afterEach(() => void vi.unstubAllGlobals());
}
