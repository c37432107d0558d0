import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { FileErrors, WatchedFileName } from './file-errors.js';

const CHECK_INTERVAL_MS = 2_000;
/** A changed file is read again after this time. If it differs again, it is still being written. */
const SETTLE_TIME_MS = 200;

/**
 * Checks a file for changes every 2 s. It compares the content, because a cluster replaces mounted files by swapping
 * symbolic links. While a file cannot be read or used, its previous content stays in use, the log says why, and a
 * metric is 1.
 */
export class WatchedFile {
  private readonly logger = new Logger('Files');
  private timer: NodeJS.Timeout | undefined;
  /** The message that was logged last, so that each reason is logged once. */
  private logged = '';

  /**
   * @param readText reads the content; rejects if the file cannot be read
   * @param current the content that was used last
   * @param use applies new content and returns `false` if it stays without effect; throws an Error, whose message
   *   contains no value of the file, if the content is unusable
   */
  constructor(
    private readonly name: WatchedFileName,
    private readonly readText: () => Promise<string>,
    private current: string,
    private readonly use: (text: string) => unknown,
    private readonly fileErrors: FileErrors,
  ) {
    fileErrors.set(name, false);
  }

  start(): void {
    this.timer = setTimeout(() => void this.check().finally(() => this.timer && this.start()), CHECK_INTERVAL_MS);
    this.timer.unref();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private async check(): Promise<void> {
    try {
      const text = await this.read();
      if (text !== this.current) {
        await sleep(SETTLE_TIME_MS);
        if ((await this.read()) !== text) return; // it is being written
        if ((await this.use(text)) !== false) this.logger.log(`${this.name}: changed; the new content is in use`);
      }
      this.current = text;
      this.logged = '';
      this.fileErrors.set(this.name, false);
    } catch (error) {
      this.fileErrors.set(this.name, true);
      const { message } = error as Error;
      if (message !== this.logged)
        this.logger.warn(`${this.name}: not applied; the previous content stays in use: ${message}`);
      this.logged = message;
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
