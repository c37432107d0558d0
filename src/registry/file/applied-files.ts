import { type EntityManager, type FindManyOptions, LessThanOrEqual } from 'typeorm';
import { AppliedRegistryFile } from '../applied-registry-file.entity.js';
import type { FileContent } from './file-content.js';
import type { PasswordGroups } from './password-groups.js';

/** Older applied files are deleted, so that the table stays small. */
const MAX_REMEMBERED_FILES = 1_000;

/** The file in force. */
const LATEST = { order: { sequence: 'DESC' }, take: 1 } as const;

/** Reads applied files, inside or outside of a transaction. */
type Find = (options: FindManyOptions<AppliedRegistryFile>) => Promise<AppliedRegistryFile[]>;

/** The registry file is older than the file in force. The registry is not changed. */
export class SupersededRegistryFileError extends Error {
  constructor({ appliedAt }: AppliedRegistryFile) {
    super(
      `the registry file is superseded and not applied: a newer one was applied at ${appliedAt.toISOString()}; ` +
        'to apply this one, raise its top-level revision, or run: node dist/cli.js registry apply --force FILE',
    );
  }
}

/** The row of the file in force. */
export async function latestFile(find: Find): Promise<AppliedRegistryFile | undefined> {
  return (await find(LATEST))[0];
}

/**
 * The file in force if this content is an old one: it was applied before and has been replaced since. A content with a
 * higher `revision` than all files before is never superseded.
 *
 * A replaced text stays superseded when only its secret files have changed, because an old pod has the old text
 * together with new secret files.
 *
 * Without the lock on the registry's revision, another process can apply this content between the two reads. This content
 * is then in force and not superseded. So both reads are repeated until the file in force has not changed meanwhile.
 */
export async function supersedingFile(find: Find, content: FileContent): Promise<AppliedRegistryFile | undefined> {
  let latest = await latestFile(find);
  for (;;) {
    if (!latest || !(await isReplaced(find, content, latest))) return undefined;
    const sequence = latest.sequence;
    latest = await latestFile(find);
    if (latest?.sequence === sequence) return latest;
  }
}

/** Whether this content was applied before the file in force. */
async function isReplaced(find: Find, content: FileContent, latest: AppliedRegistryFile): Promise<boolean> {
  if (latest.contentHash === content.contentHash) return false;
  const { revision, contentHash, textHash } = content;
  const highest = latest.highestRevision ?? Number.NEGATIVE_INFINITY;
  if (revision !== undefined && revision > highest) return false;
  const where = latest.textHash === textHash ? { contentHash } : [{ contentHash }, { textHash }];
  return (await find({ where, take: 1 })).length > 0;
}

/** What is recorded about the file in force. */
export interface AppliedState extends FileContent {
  passwordGroups: PasswordGroups | null;
  /** What a process needs to recognize the file without parsing it; `undefined` if the file must be parsed. */
  recognition: { secretFiles: string[]; grantsHash: string } | undefined;
  /** The revision of the registry with the content of the file. */
  registryRevision: number;
}

/** Records that a file is in force. The caller must hold the lock on the registry's revision. */
export async function rememberApplied(manager: EntityManager, state: AppliedState, now: number): Promise<void> {
  const [latest] = await manager.find(AppliedRegistryFile, LATEST);
  const { contentHash, textHash, revision, passwordGroups, recognition, registryRevision } = state;
  const columns = {
    passwordGroups,
    secretFiles: recognition?.secretFiles ?? null,
    grantsHash: recognition?.grantsHash ?? null,
    registryRevision: recognition ? registryRevision : null,
  };
  if (latest?.contentHash === contentHash) {
    await manager.update(AppliedRegistryFile, { contentHash }, columns);
    return;
  }
  // a superseded file needs only its hashes and its revision
  if (latest) {
    const { contentHash: superseded } = latest;
    await manager.update(AppliedRegistryFile, { contentHash: superseded }, { passwordGroups: null, secretFiles: null });
  }
  const sequence = (latest?.sequence ?? 0) + 1;
  const revisions = [latest?.highestRevision, revision].filter((each) => typeof each === 'number');
  const highestRevision = revisions.length > 0 ? Math.max(...revisions) : null;
  await manager.delete(AppliedRegistryFile, { contentHash });
  await manager.delete(AppliedRegistryFile, { sequence: LessThanOrEqual(sequence - MAX_REMEMBERED_FILES) });
  const row = { contentHash, textHash, sequence, highestRevision, appliedAt: new Date(now), ...columns };
  await manager.insert(AppliedRegistryFile, row);
}
