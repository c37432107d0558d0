import { type EntityManager, type FindManyOptions, LessThanOrEqual } from 'typeorm';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import type { FileContent } from './file-content.js';

/** Applied files that are remembered. */
const MAX_REMEMBERED_FILES = 1_000;

/** Reads applied files, inside a transaction or outside. */
type Find = (options: FindManyOptions<AppliedRegistryFile>) => Promise<AppliedRegistryFile[]>;

/** The file was replaced by another, which is in force. Nothing is changed. */
export class SupersededRegistryFileError extends Error {
  constructor({ appliedAt }: AppliedRegistryFile) {
    super(
      `the registry file is superseded and not applied: a newer one was applied at ${appliedAt.toISOString()}; ` +
        'to apply this one, raise its top-level revision, or run: node dist/cli.js registry apply --force FILE',
    );
  }
}

/**
 * The file in force, if it supersedes this content: if this content was applied before and has been replaced since. A
 * `revision` that is higher than every one before always applies. A text that was applied before and has been replaced
 * stays superseded with other secret files: an old pod has the old text, and the new secrets.
 */
export async function supersedingFile(find: Find, content: FileContent): Promise<AppliedRegistryFile | undefined> {
  const [latest] = await find({ order: { sequence: 'DESC' }, take: 1 });
  if (!latest || latest.contentHash === content.contentHash) return undefined;
  const { revision, contentHash, textHash } = content;
  const highest = latest.highestRevision ?? Number.NEGATIVE_INFINITY;
  if (revision !== undefined && revision > highest) return undefined;
  const where = latest.textHash === textHash ? { contentHash } : [{ contentHash }, { textHash }];
  return (await find({ where, take: 1 })).length > 0 ? latest : undefined;
}

/** Notes that a content is in force. The caller holds the lock of the registry's revision. */
export async function rememberApplied(manager: EntityManager, content: FileContent, now: number): Promise<void> {
  const [latest] = await manager.find(AppliedRegistryFile, { order: { sequence: 'DESC' }, take: 1 });
  const { contentHash, textHash, revision } = content;
  if (latest?.contentHash === contentHash) return;
  const sequence = (latest?.sequence ?? 0) + 1;
  const revisions = [latest?.highestRevision, revision].filter((each) => typeof each === 'number');
  const highestRevision = revisions.length > 0 ? Math.max(...revisions) : null;
  await manager.delete(AppliedRegistryFile, { contentHash });
  await manager.delete(AppliedRegistryFile, { sequence: LessThanOrEqual(sequence - MAX_REMEMBERED_FILES) });
  const row = { contentHash, textHash, sequence, highestRevision, appliedAt: new Date(now) };
  await manager.insert(AppliedRegistryFile, row);
}
