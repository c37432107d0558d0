import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { Gauge } from 'prom-client';
import { FileErrors } from '../../platform/files/file-errors.js';
import { WatchedFile } from '../../platform/files/watched-file.js';
import { MetricsRegistry } from '../../platform/metrics/metrics-registry.js';
import { SupersededRegistryFileError } from './applied-files.js';
import { readWatchedText, type WatchedText } from './read-registry-file.js';
import { RegistryFile } from './registry-file.js';

/** REGISTRY_FILE: applied at the start, and again whenever it, or a secret file that it names, changes. */
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
      help: '1 while REGISTRY_FILE of this process is an older one, which is not applied.',
      registers: [metrics],
    });
  }

  /**
   * Applies the file, unless it is superseded: then the process serves with the registry of the database. A file that
   * is refused later leaves the registry as it was.
   *
   * @throws RegistryFileError with every violation of the file as it is now
   */
  async follow(path: string): Promise<void> {
    const read = () => readWatchedText(path).then((watched) => JSON.stringify(watched));
    const first = await read().catch(() => JSON.stringify({ text: '' }));
    let { text } = parsed(first);
    await this.apply(path, false);
    const change = async (watched: string) => {
      const changed = parsed(watched);
      // a file that lists nothing is one that a full disk has left, and would take everything from the file's care
      if (changed.text.trim() === '') throw new Error('the file is empty');
      // an operator who changes the text of a running process means it; a change of secret files says nothing about the
      // text
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
