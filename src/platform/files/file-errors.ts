import { Injectable } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { MetricsRegistry } from '../metrics/metrics-registry.js';

/** The files that are looked at again while the service runs. */
export type WatchedFileName = 'SIGNING_KEYS_FILE' | 'REGISTRY_FILE';

/** Shows which files are unusable as they are now, so that what was read before is still in force. */
@Injectable()
export class FileErrors {
  private readonly faulty: Gauge<'file'>;

  constructor(metrics: MetricsRegistry) {
    this.faulty = new Gauge({
      name: 'cas_file_faulty',
      help: '1 while a file cannot be used as it is now, and what was read before stays in force.',
      labelNames: ['file'],
      registers: [metrics],
    });
  }

  set(file: WatchedFileName, isFaulty: boolean): void {
    this.faulty.set({ file }, Number(isFaulty));
  }
}
