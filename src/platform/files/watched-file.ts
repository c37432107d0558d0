import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { MetricsRegistry } from '../metrics.js';

export type WatchedFileName = 'SIGNING_KEYS_FILE' | 'ADMIN_TOKENS_FILE' | 'DATABASE_URL_FILE';

const CHECK_INTERVAL_MS = 2_000;
/** A changed file is read again after this time. If it differs again, it is still being written. */
export const SETTLE_TIME_MS = 200;

interface WatchedFileRules {
  read(): Promise<string>;
  current: string;
  /** Returns `false` for content without effect. Throws an Error without values of the file if it is unusable. */
  use(content: string): unknown;
  checkIntervalMs?: number;
}

/** Compares the content, because a cluster replaces mounted files by swapping symbolic links. */
export class WatchedFile {
  private readonly logger = new Logger('Files');
  private timer: NodeJS.Timeout | undefined;
  private logged = '';
  /** The content that was used last. */
  private current: string;

  constructor(
    private readonly name: WatchedFileName,
    private readonly rules: WatchedFileRules,
    private readonly metrics: MetricsRegistry,
  ) {
    this.current = rules.current;
    metrics.invalidFiles.set({ file: name }, 0);
  }

  start(): void {
    const { checkIntervalMs = CHECK_INTERVAL_MS } = this.rules;
    this.timer = setTimeout(() => void this.check().finally(() => this.timer && this.start()), checkIntervalMs);
    this.timer.unref();
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  async check(): Promise<void> {
    try {
      const content = await this.read();
      if (content !== this.current) {
        await sleep(SETTLE_TIME_MS);
        if ((await this.read()) !== content) return; // it is being written
        if ((await this.rules.use(content)) !== false)
          this.logger.log(`${this.name}: changed; the new content is in use`);
      }
      this.current = content;
      this.logged = '';
      this.metrics.invalidFiles.set({ file: this.name }, 0);
    } catch (error) {
      this.metrics.invalidFiles.set({ file: this.name }, 1);
      const { message } = error as Error;
      if (message !== this.logged)
        this.logger.warn(`${this.name}: not applied; the previous content stays in use: ${message}`);
      this.logged = message;
    }
  }

  private read(): Promise<string> {
    return this.rules.read().catch(() => {
      throw new Error('the file cannot be read');
    });
  }
}
