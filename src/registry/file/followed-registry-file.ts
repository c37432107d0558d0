import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { DatabaseStart } from '../../platform/database/database-start.js';
import { WatchedFile } from '../../platform/files/watched-file.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import { SupersededRegistryFileError } from './applied-files.js';
import { RegistryFile } from './registry-file.js';
import { RegistrySource } from './registry-source.js';
import { RegistryFileError } from './yaml-document.js';

@Injectable()
export class FollowedRegistryFile implements OnApplicationShutdown {
  private readonly logger = new Logger(FollowedRegistryFile.name);
  private isSuperseded = false;
  private file: WatchedFile<RegistrySource> | undefined;
  /** The last file that was invalid, so that it is parsed again only after the registry has changed. */
  private invalid: { source: RegistrySource; revision: number; error: RegistryFileError } | undefined;

  constructor(
    private readonly registryFile: RegistryFile,
    private readonly metrics: MetricsRegistry,
    private readonly start: DatabaseStart,
  ) {
    metrics.gauge(
      'cas_registry_file_superseded',
      '1 while REGISTRY_FILE is superseded; the process does not apply it.',
      () => Number(this.isSuperseded),
    );
  }

  /** @throws RegistryFileError with every violation. Later, an invalid file changes nothing. */
  async follow(path: string): Promise<void> {
    const first = await RegistrySource.read(path);
    let latest = first; // the last source that was read
    let used = first;
    await this.start.run(() => this.apply(first, false));
    const read = async () => {
      latest = await RegistrySource.read(path, latest);
      return latest;
    };
    const change = async (changed: RegistrySource) => {
      // An operator who changes the text under a running process wants it applied, even if it is superseded. A change of
      // the secret files alone does not show that the operator wants this text.
      const isApplied = await this.apply(changed, !changed.bytes.equals(used.bytes));
      used = changed;
      return isApplied;
    };
    const isSame = (one: RegistrySource, other: RegistrySource) => one.equals(other);
    this.file = new WatchedFile('REGISTRY_FILE', { read, current: first, use: change, isSame }, this.metrics);
    this.file.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
  }

  private async apply(source: RegistrySource, force: boolean): Promise<boolean> {
    // a full disk may leave an empty file, which would release all entries from the file
    if (source.text.trim() === '') throw new RegistryFileError(['the file is empty']);
    const revision = await this.registryFile.revision();
    if (this.invalid?.revision === revision && this.invalid.source.equals(source)) throw this.invalid.error;
    try {
      await this.registryFile.applySource(source, { force });
      this.isSuperseded = false;
      return true;
    } catch (error) {
      if (error instanceof RegistryFileError) this.invalid = { source, revision, error };
      if (!(error instanceof SupersededRegistryFileError)) throw error;
      this.isSuperseded = true;
      this.logger.warn(`REGISTRY_FILE: ${error.message}`);
      return false;
    } finally {
      source.forgetDocument();
    }
  }
}
