import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { FileFaults } from '../../platform/files/file-faults.js';
import { WatchedFile } from '../../platform/files/watched-file.js';
import { readWithSecrets } from './read-registry-file.js';
import { RegistryFile } from './registry-file.js';

/** REGISTRY_FILE: in force from the start, and again whenever it, or a file of a secret that it names, changes. */
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
    const readText = () => readWithSecrets(path);
    const text = await readText().catch(() => '');
    await this.registryFile.apply(path);
    const change = async (changed: string) => {
      // a file that lists nothing is one that a full disk has left, and would take everything from the file's care
      if (changed.trim() === '') throw new Error('the file is empty');
      await this.registryFile.apply(path);
    };
    this.file = new WatchedFile('REGISTRY_FILE', readText, text, change, this.faults);
    this.file.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
  }
}
