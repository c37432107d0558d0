import { readFile } from 'node:fs/promises';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { FileFaults } from '../../platform/files/file-faults.js';
import { WatchedFile } from '../../platform/files/watched-file.js';
import { RegistryFile } from './registry-file.js';

/** REGISTRY_FILE: in force from the start, and again whenever it changes. */
@Injectable()
export class FollowedRegistryFile implements OnApplicationShutdown {
  private file: WatchedFile | undefined;

  constructor(
    private readonly registryFile: RegistryFile,
    private readonly faults: FileFaults,
  ) {}

  /**
   * Applies the file. One that is refused later leaves the registry as it was.
   *
   * @throws RegistryFileError naming every fault of the file as it is now
   */
  async follow(path: string): Promise<void> {
    const text = await readFile(path, 'utf8').catch(() => '');
    const apply = async () => void (await this.registryFile.apply(path));
    await apply();
    this.file = new WatchedFile('REGISTRY_FILE', path, text, apply, this.faults);
    this.file.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
  }
}
