import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { loadWhenUsed } from '../platform/load-when-used.js';
import { type LimitCount, type LimitCounts, recordSent } from './limit-counts.js';

const EXCHANGE_INTERVAL_MS = 100;
const COMMAND_TIMEOUT_MS = 500;
const MAX_BATCH_COUNTS = 1_000;
const PREFIX = 'cas:limit:';

/** No request waits for Redis. While Redis is unavailable, each process goes on alone with the counts that it has. */
export class SharedCounts {
  private readonly logger = new Logger('RateLimits');
  private readonly redis: Redis;
  private readonly timer: NodeJS.Timeout;
  private exchange: Promise<void> | undefined;
  isUp = true;

  constructor(
    url: string,
    private readonly counts: () => LimitCounts[],
  ) {
    const { Redis } = loadWhenUsed<typeof import('ioredis')>('ioredis');
    this.redis = new Redis(url, {
      connectTimeout: 1_000,
      commandTimeout: COMMAND_TIMEOUT_MS,
      socketTimeout: 2 * COMMAND_TIMEOUT_MS, // commands that wait for a frozen server would fill the memory
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      retryStrategy: () => 1_000,
    });
    this.redis.on('error', () => undefined); // exchangeCounts logs the outage once
    this.timer = setInterval(() => this.startExchange(), EXCHANGE_INTERVAL_MS);
    this.timer.unref();
  }

  stop(): void {
    clearInterval(this.timer);
    this.redis.disconnect();
  }

  private startExchange(): void {
    this.exchange ??= this.exchangeCounts().finally(() => {
      this.exchange = undefined;
    });
  }

  private async exchangeCounts(): Promise<void> {
    const unsent = this.counts().flatMap((counts) => counts.takeUnsent(MAX_BATCH_COUNTS));
    try {
      // a probe that writes, because a server that rejects writes is not usable
      if (unsent.length > 0) await this.add(unsent);
      else await this.redis.set(`${PREFIX}probe`, 1, 'PX', 1_000);
      if (!this.isUp) this.logger.log('REDIS_URL: reachable again; the processes share their counts');
      this.isUp = true;
    } catch {
      for (const count of unsent) recordSent(count, 0);
      // the library's message may contain the URL with its password
      if (this.isUp) this.logger.warn('REDIS_URL: unreachable; each process applies its own counts');
      this.isUp = false;
    }
  }

  private async add(unsent: LimitCount[]): Promise<void> {
    const pipeline = this.redis.pipeline();
    for (const { key, window, windowMs, sending } of unsent) {
      const name = `${PREFIX}${key}:${window}`;
      pipeline.incrby(name, sending).pexpire(name, 2 * windowMs);
    }
    const results = (await pipeline.exec()) ?? [];
    const failed = results.find(([error]) => error);
    if (failed) throw failed[0];
    for (const [index, count] of unsent.entries()) recordSent(count, Number(results[2 * index]?.[1]));
  }
}
