import { appendFileSync } from 'node:fs';

/** Records a measurement. The test runner prints it at the end. */
export function figure(text: string): void {
  if (process.env.TEST_FIGURES) appendFileSync(process.env.TEST_FIGURES, `  ${text}\n`);
}

/** The maximum of many waits, in milliseconds. */
export class LongestWait {
  milliseconds = 0;

  async of<Result>(work: Promise<Result>): Promise<Result> {
    const startedAt = performance.now();
    const result = await work;
    this.milliseconds = Math.max(this.milliseconds, Math.round(performance.now() - startedAt));
    return result;
  }
}
