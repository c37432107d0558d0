import { createRequire } from 'node:module';
import { Injectable } from '@nestjs/common';
import { type EntityManager, LessThanOrEqual } from 'typeorm';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { sha256 } from '../../platform/secret.js';
import { slowHash } from '../agent-password.js';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import { GrantSettingsClasses } from '../grant-settings-classes.js';
import { readRevision } from '../registry-revision.js';
import { findRows, type Reads } from '../row-pages.js';
import type { PasswordGroups } from './password-groups.js';
import type { RegistrySource } from './registry-source.js';

/** Older applied files are deleted, so that the table stays small. */
const MAX_REMEMBERED_FILES = 1_000;

/** Another version of the service may check files by other rules. */
const SERVICE_VERSION: string = createRequire(import.meta.url)('../../../package.json').version;

/** A constant salt, because files are looked up by their hash. */
const SALT = Buffer.from('customer-authorization registry');

export interface FileContent {
  contentHash: string;
  textHash: string;
  revision: number | undefined;
}

export interface AppliedState extends FileContent {
  passwordGroups: PasswordGroups | null;
  /** The revision of the registry with the content of the file; `null` if each start must check the file. */
  registryRevision: number | null;
}

/** The registry file is older than the file in force. The registry is not changed. */
export class SupersededRegistryFileError extends Error {
  constructor({ appliedAt }: AppliedRegistryFile) {
    super(
      `the registry file is superseded and not applied: a newer one was applied at ${appliedAt.toISOString()}; ` +
        'to apply this one, raise its top-level revision, or run: node dist/cli.js registry apply --force FILE',
    );
  }
}

/** The hashes are as slow as a password's: from a fast hash of a file, an attacker could guess its passwords. */
export async function contentOf({ text, secretsText }: RegistrySource, revision?: unknown): Promise<FileContent> {
  const texts = [JSON.stringify([text, secretsText]), text];
  const [contentHash = '', textHash = ''] = await Promise.all(texts.map((each) => slowHash(each, SALT)));
  return { contentHash, textHash, revision: typeof revision === 'number' ? revision : undefined };
}

/** A process recognizes the file in force by its bytes, so that a start with it checks nothing. */
@Injectable()
export class AppliedFiles {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly grants: GrantSettingsClasses,
  ) {}

  async latest(reads: Reads): Promise<AppliedRegistryFile | undefined> {
    const [row] = await findRows(reads, AppliedRegistryFile, { order: { sequence: 'DESC' }, take: 1 });
    return row;
  }

  /** Only the file can change its entries (protocol §8.9), and the log shows changes that an operator made with SQL. */
  async isInForce(source: RegistrySource): Promise<boolean> {
    const latest = await this.latest(this.database);
    if (!latest || latest.registryRevision === null || latest.grantsHash !== this.grantsHash()) return false;
    if (latest.contentHash !== (await contentOf(source)).contentHash) return false;
    return (await readRevision(this.database)).revision === latest.registryRevision;
  }

  /**
   * Rejects a content that was replaced, unless its `revision` is higher than all before. A replaced text stays
   * superseded when only its secret files have changed, because an old pod has the old text together with new secret
   * files.
   *
   * Without the lock on the registry's revision, another process can apply this content between the two reads. So both
   * reads are repeated until the file in force has not changed meanwhile.
   *
   * @throws SupersededRegistryFileError
   */
  async assertNotSuperseded(content: FileContent, reads: Reads): Promise<void> {
    let latest = await this.latest(reads);
    while (latest && (await isReplaced(content, latest, reads))) {
      const { sequence } = latest;
      latest = await this.latest(reads);
      if (latest?.sequence === sequence) throw new SupersededRegistryFileError(latest);
    }
  }

  /** The caller must hold the lock on the registry's revision. */
  async remember(manager: EntityManager, state: AppliedState): Promise<void> {
    const latest = await this.latest(manager);
    const { contentHash, textHash, revision, passwordGroups, registryRevision } = state;
    const columns = { passwordGroups, registryRevision, grantsHash: this.grantsHash() };
    if (latest?.contentHash === contentHash) {
      await manager.update(AppliedRegistryFile, { contentHash }, columns);
      return;
    }
    // a superseded file needs only its hashes and its revision
    await manager.update(AppliedRegistryFile, { contentHash: latest?.contentHash ?? '' }, { passwordGroups: null });
    const sequence = (latest?.sequence ?? 0) + 1;
    const highest = latest?.highestRevision ?? null;
    const highestRevision = revision === undefined ? highest : Math.max(revision, highest ?? revision);
    await manager.delete(AppliedRegistryFile, { contentHash });
    await manager.delete(AppliedRegistryFile, { sequence: LessThanOrEqual(sequence - MAX_REMEMBERED_FILES) });
    const row = { contentHash, textHash, sequence, highestRevision, appliedAt: new Date(this.clock.now()) };
    await manager.insert(AppliedRegistryFile, { ...row, ...columns });
  }

  private grantsHash(): string {
    return sha256(JSON.stringify([SERVICE_VERSION, ...this.grants.names()]));
  }
}

/** Whether a content was applied before the file in force. */
async function isReplaced(content: FileContent, latest: AppliedRegistryFile, reads: Reads): Promise<boolean> {
  const { revision, contentHash, textHash } = content;
  if (latest.contentHash === contentHash) return false;
  if (revision !== undefined && revision > (latest.highestRevision ?? Number.NEGATIVE_INFINITY)) return false;
  const where = latest.textHash === textHash ? { contentHash } : [{ contentHash }, { textHash }];
  return (await findRows(reads, AppliedRegistryFile, { where, take: 1 })).length > 0;
}
