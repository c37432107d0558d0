import { onTestFinished, vi } from 'vitest';

/** The pause between two reads of a file that a process watches. */
export const FILE_CHECK_PAUSE_MS = 2_000;

/** Starts no timer of this duration until the spies are restored. Returns the work of these timers. */
export function collectTimers(durationMs: number, kind: 'setTimeout' | 'setInterval' = 'setTimeout'): (() => void)[] {
  const collected: (() => void)[] = [];
  const { [kind]: start, setTimeout: startOther } = globalThis;
  const collect = (work: () => void, delayMs?: number, ...parameters: []) => {
    if (delayMs !== durationMs) return start(work, delayMs, ...parameters);
    collected.push(work);
    return startOther(() => undefined);
  };
  vi.spyOn(globalThis, kind).mockImplementation(collect as never);
  return collected;
}

/** Makes a service repeat work sooner that it repeats after this pause, until the end of the test. */
export function shortenPauses(pauseMs: number): void {
  const { setTimeout: start } = globalThis;
  const shortened = (work: () => void, delayMs?: number, ...parameters: []) =>
    start(work, delayMs === pauseMs ? 50 : delayMs, ...parameters);
  const spy = vi.spyOn(globalThis, 'setTimeout').mockImplementation(shortened as typeof setTimeout);
  onTestFinished(() => spy.mockRestore());
}
