import { appendFileSync } from 'node:fs';

/** Tells what was measured; the runner prints it when all is done. */
export function figure(text: string): void {
  if (process.env.TEST_FIGURES) appendFileSync(process.env.TEST_FIGURES, `  ${text}\n`);
}

/** The longest of many waits, in milliseconds. */
export class LongestWait {
  milliseconds = 0;

  async of<Result>(work: Promise<Result>): Promise<Result> {
    const begun = performance.now();
    const result = await work;
    this.milliseconds = Math.max(this.milliseconds, Math.round(performance.now() - begun));
    return result;
  }
}
