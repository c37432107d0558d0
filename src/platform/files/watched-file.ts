import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { FileErrors, WatchedFileName } from './file-errors.js';

/** Milliseconds between two looks, and until a change is looked at again. */
const CHECK_INTERVAL_MS = 2_000;
const SETTLE_TIME_MS = 200;

/**
 * A file that is looked at every 2 s: by its content, since a cluster replaces mounted files by swapping links. While it
 * cannot be read or used, what was read before stays in force, one line says why, and a metric is raised.
 */
export class WatchedFile {
  private readonly logger = new Logger('Files');
  private timer: NodeJS.Timeout | undefined;
  private told = '';

  /**
   * @param readText reads what is watched; rejects when it cannot be read
   * @param used the text that is in force
   * @param use takes a new text, and answers `false` if it is not put in force; throws an Error, whose message holds no value
   *   of the file, when it cannot be used
   */
  constructor(
    private readonly name: WatchedFileName,
    private readonly readText: () => Promise<string>,
    private used: string,
    private readonly use: (text: string) => unknown,
    private readonly faults: FileErrors,
  ) {
    faults.set(name, false);
  }

  start(): void {
    this.timer = setTimeout(() => void this.look().finally(() => this.timer && this.start()), CHECK_INTERVAL_MS);
    this.timer.unref();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private async look(): Promise<void> {
    try {
      const text = await this.read();
      if (text !== this.used) {
        await sleep(SETTLE_TIME_MS);
        if ((await this.read()) !== text) return; // it is being written
        if ((await this.use(text)) !== false) this.logger.log(`${this.name}: changed, and in force`);
      }
      this.used = text;
      this.told = '';
      this.faults.set(this.name, false);
    } catch (error) {
      this.faults.set(this.name, true);
      const { message } = error as Error;
      if (message !== this.told) this.logger.warn(`${this.name}: what was read before stays in force: ${message}`);
      this.told = message;
    }
  }

  private async read(): Promise<string> {
    try {
      return await this.readText();
    } catch {
      throw new Error('the file cannot be read');
    }
  }
}
