import { createRequire } from 'node:module';
import { Injectable } from '@nestjs/common';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { sha256 } from '../../platform/secret.js';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import { isLogComplete } from '../changes/changes-since.js';
import { readRevision } from '../changes/read-revision.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { latestFile } from './applied-files.js';
import { contentOf, hashOfText } from './file-content.js';
import type { RegistrySource } from './registry-source.js';

/** Longer lists do not fit into the column, so that the file is parsed at each start. */
const MAX_SECRET_FILES_BYTES = 60_000;

/** Another version of the service may check files by other rules. */
const SERVICE_VERSION: string = createRequire(import.meta.url)('../../../package.json').version;

/** Recognizes the registry file in force by its bytes, so that a process that starts with it has no work. */
@Injectable()
export class FileInForce {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly grants: GrantSettingsClasses,
  ) {}

  /** The secret files that a text names, if it is the text of the file in force. */
  async secretFilesOf(text: string): Promise<string[] | undefined> {
    const latest = await this.latest();
    if (!latest?.secretFiles || latest.textHash !== (await hashOfText(text))) return undefined;
    return latest.secretFiles;
  }

  /**
   * Whether the registry of the database has the content of a file. The file was then applied last, without a warning,
   * and the log shows that no operator has changed the registry by SQL since. Only the file can change its entries
   * (protocol §8.9).
   */
  async isApplied(source: RegistrySource): Promise<boolean> {
    const latest = await this.latest();
    if (!latest || latest.registryRevision === null || latest.grantsHash !== this.grantsHash()) return false;
    const { contentHash } = await contentOf(source);
    if (latest.contentHash !== contentHash) return false;
    const range = { after: latest.registryRevision, until: await readRevision(this.database) };
    return isLogComplete(this.database, range, this.clock.now());
  }

  /** What is recorded about a file, so that it is recognized later; `undefined` if it must be parsed each time. */
  recognitionOf({ secretFiles }: RegistrySource): { secretFiles: string[]; grantsHash: string } | undefined {
    if (Buffer.byteLength(JSON.stringify(secretFiles)) > MAX_SECRET_FILES_BYTES) return undefined;
    return { secretFiles, grantsHash: this.grantsHash() };
  }

  private latest(): Promise<AppliedRegistryFile | undefined> {
    return latestFile((options) => this.database.read(AppliedRegistryFile, options));
  }

  /** The hash of what a file is checked with: the version of the service and the names of its grants. */
  private grantsHash(): string {
    return sha256(JSON.stringify([SERVICE_VERSION, ...this.grants.names()]));
  }
}
