import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { FileErrors } from '../../platform/files/file-errors.js';
import { WatchedFile } from '../../platform/files/watched-file.js';
import { MetricsRegistry } from '../../platform/metrics/metrics-registry.js';
import { SupersededRegistryFileError } from './applied-files.js';
import { readWatchedText, type WatchedText } from './read-registry-file.js';
import { RegistryFile } from './registry-file.js';

/** Applies REGISTRY_FILE at the start, and again when the file or a secret file that it names changes. */
@Injectable()
export class FollowedRegistryFile implements OnApplicationShutdown {
  private readonly logger = new Logger(FollowedRegistryFile.name);
  private readonly superseded: Gauge;
  private file: WatchedFile | undefined;

  constructor(
    private readonly registryFile: RegistryFile,
    private readonly errors: FileErrors,
    metrics: MetricsRegistry,
  ) {
    this.superseded = new Gauge({
      name: 'cas_registry_file_superseded',
      help: '1 while REGISTRY_FILE is superseded; the process does not apply it.',
      registers: [metrics],
    });
  }

  /**
   * Applies the file and watches it. If the file is superseded, the process uses the registry of the database. If a
   * later version of the file is invalid, the registry does not change.
   *
   * @throws RegistryFileError with every violation of the present file
   */
  async follow(path: string): Promise<void> {
    const read = () => readWatchedText(path).then((watched) => JSON.stringify(watched));
    const first = await read().catch(() => JSON.stringify({ text: '' }));
    let { text } = parsed(first);
    await this.apply(path, false);
    const change = async (watched: string) => {
      const changed = parsed(watched);
      // a full disk may leave an empty file, which would release all entries from the file
      if (changed.text.trim() === '') throw new Error('the file is empty');
      // An operator who changes the text under a running process wants it applied, even if it is superseded. A change of
      // the secret files alone does not show that the operator wants this text.
      const isApplied = await this.apply(path, changed.text !== text);
      text = changed.text;
      return isApplied;
    };
    this.file = new WatchedFile('REGISTRY_FILE', read, first, change, this.errors);
    this.file.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
  }

  private async apply(path: string, force: boolean): Promise<boolean> {
    try {
      await this.registryFile.apply(path, { force });
      this.superseded.set(0);
      return true;
    } catch (error) {
      if (!(error instanceof SupersededRegistryFileError)) throw error;
      this.superseded.set(1);
      this.logger.warn(`REGISTRY_FILE: ${error.message}`);
      return false;
    }
  }
}

function parsed(watched: string): WatchedText {
  return JSON.parse(watched);
}
