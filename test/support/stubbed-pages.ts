import { afterEach, beforeEach, vi } from 'vitest';

/**
 * The real duration of a skipped wait. Without it, the loops that poll move the clock by minutes within one request.
 */
const SKIPPED_WAIT_MS = 10;

/**
 * Moves the clock in place of each wait of the examples for callers and of the package browser-client. Returns the
 * waits of the running test.
 */
export function skipWaits(): { totalMs(): number } {
  let movedMs = 0;
  beforeEach(() => {
    movedMs = 0;
    const { setTimeout } = globalThis;
    const now = Date.now;
    vi.spyOn(Date, 'now').mockImplementation(() => now() + movedMs);
    const start = (work: () => void, delayMs = 0, ...parameters: []) => {
      // Node.js starts timers of its own for connections.
      if (!/examples\/integrating|browser-client\/src/.test(new Error().stack ?? ''))
        return setTimeout(work, delayMs, ...parameters);
      movedMs += delayMs;
      return setTimeout(work, SKIPPED_WAIT_MS, ...parameters);
    };
    vi.spyOn(globalThis, 'setTimeout').mockImplementation(start as typeof setTimeout);
  });
  afterEach(() => void vi.restoreAllMocks());
  return { totalMs: () => movedMs };
}

/** Gives each test the globals of a web page that the examples for callers use, without `navigator`, as Node.js 20. */
export function stubPageGlobals(): void {
  beforeEach(() => {
    const items = new Map<string, string>();
    vi.stubGlobal('navigator', undefined);
    vi.stubGlobal('localStorage', {
      getItem: (name: string) => items.get(name) ?? null,
      setItem: (name: string, value: string) => void items.set(name, value),
      removeItem: (name: string) => void items.delete(name),
    });
  });
  afterEach(() => void vi.unstubAllGlobals());
}
