import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { MetricsRegistry } from '../metrics.js';

/** The files that the service checks for changes while it runs. */
export type WatchedFileName = 'SIGNING_KEYS_FILE' | 'REGISTRY_FILE' | 'ADMIN_TOKEN_FILE' | 'ADMIN_TOKENS_FILE';

/** Shows which files are unusable now. The service then keeps using their previous content, or a part of it. */
@Injectable()
export class FileErrors {
  private readonly gauge: Gauge<'file'>;

  constructor(metrics: MetricsRegistry) {
    this.gauge = new Gauge({
      name: 'cas_file_invalid',
      help: '1 while the file is invalid; the process uses its last valid content, or a part of it.',
      labelNames: ['file'],
      registers: [metrics],
    });
  }

  set(file: WatchedFileName, isUnusable: boolean): void {
    this.gauge.set({ file }, Number(isUnusable));
  }
}

const CHECK_INTERVAL_MS = 2_000;
/** A changed file is read again after this time. If it differs again, it is still being written. */
export const SETTLE_TIME_MS = 200;

/** How a file is read, compared and used. */
interface WatchedFileRules<Content> {
  read(): Promise<Content>;
  isSame(one: Content, other: Content): boolean;
  /** The content that was used last. */
  current: Content;
  /**
   * Applies new content and returns `false` if it stays without effect. Throws an Error, whose message contains no value
   * of the file, if the content is unusable.
   */
  use(content: Content): unknown;
  /** The interval between two checks; 2 s if omitted. */
  checkIntervalMs?: number;
  /**
   * Set this if `use` applies a part of unusable content: what then stays in use, for the log. If the file later
   * contains the previous content again, that content is used again.
   */
  partInUse?: string;
}

/**
 * Checks a file for changes by comparing its content, because a cluster replaces mounted files by swapping symbolic
 * links. While the file cannot be read or used, its previous content or a part of that content stays in use, the log
 * says why, and a metric is 1.
 */
export class WatchedFile<Content> {
  private readonly logger = new Logger('Files');
  private timer: NodeJS.Timeout | undefined;
  /** The message that was logged last, so that each reason is logged once. */
  private logged = '';
  /** The content that was used last; `undefined` if only a part of it was. */
  private current: Content | undefined;

  constructor(
    private readonly name: WatchedFileName,
    private readonly rules: WatchedFileRules<Content>,
    private readonly fileErrors: FileErrors,
  ) {
    this.current = rules.current;
    fileErrors.set(name, false);
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

  private async check(): Promise<void> {
    try {
      const content = await this.read();
      if (this.current === undefined || !this.rules.isSame(content, this.current)) {
        await sleep(SETTLE_TIME_MS);
        if (!this.rules.isSame(await this.read(), content)) return; // it is being written
        if ((await this.rules.use(content)) !== false)
          this.logger.log(`${this.name}: changed; the new content is in use`);
      }
      this.current = content;
      this.logged = '';
      this.fileErrors.set(this.name, false);
    } catch (error) {
      this.fileErrors.set(this.name, true);
      const { partInUse } = this.rules;
      if (partInUse !== undefined) this.current = undefined;
      const { message } = error as Error;
      if (message !== this.logged)
        this.logger.warn(`${this.name}: not applied; ${partInUse ?? 'the previous content'} stays in use: ${message}`);
      this.logged = message;
    }
  }

  private read(): Promise<Content> {
    return this.rules.read().catch(() => {
      throw new Error('the file cannot be read');
    });
  }
}
