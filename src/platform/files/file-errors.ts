import { Injectable } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { MetricsRegistry } from '../metrics/metrics-registry.js';

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
