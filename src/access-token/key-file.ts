import {
  closeSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { withoutByteOrderMark } from '../platform/text-forms.js';
import { type PrivateKeySet, readKeySet } from './key-set.js';

/** Changes the key file for the operator. A change is atomic, and one process changes the file at a time. */
export class KeyFile {
  private readonly path: string;

  /** @throws Error if the file does not exist */
  constructor(path: string) {
    try {
      this.path = realpathSync(path);
    } catch {
      throw new Error('FILE: the file cannot be read');
    }
  }

  /** @throws Error that names the invalid key and the rule, without a value */
  read(): PrivateKeySet {
    const text = this.readText();
    try {
      readKeySet(text);
    } catch (error) {
      throw new Error(`FILE: ${(error as Error).message}`);
    }
    const { keys }: PrivateKeySet = JSON.parse(text);
    return { keys: keys.map((key) => ({ ...key, nbf: key.nbf ?? 0 })) };
  }

  /** An error leaves the file unchanged. @throws Error of `read` or `change`, or if another process changes the file */
  change(change: (set: PrivateKeySet) => PrivateKeySet): PrivateKeySet {
    const draft = this.openDraft();
    try {
      const changed = change(this.read());
      writeFileSync(draft.file, `${JSON.stringify(changed, undefined, 2)}\n`);
      fsyncSync(draft.file);
      renameSync(draft.path, this.path);
      return changed;
    } catch (error) {
      rmSync(draft.path);
      throw error;
    } finally {
      closeSync(draft.file);
    }
  }

  private readText(): string {
    try {
      return withoutByteOrderMark(readFileSync(this.path, 'utf8'));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw new Error('FILE: the file cannot be read');
      throw new Error(notReadable(this.path));
    }
  }

  /** Creates the draft. The draft is also the lock, because only one process can create it. */
  private openDraft(): { path: string; file: number } {
    const path = `${this.path}.new`;
    try {
      const { mode, uid, gid } = statSync(this.path);
      const file = openSync(path, 'wx', mode & 0o777);
      fchmodSync(file, mode & 0o777); // the umask may have removed the access of the group
      preserveOwner(file, uid, gid);
      return { path, file };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST')
        throw new Error(`FILE: another process is changing it; if none is, remove ${path}`);
      throw new Error(
        `FILE: its folder cannot be written; copy the file into a folder of user ${process.getuid?.()}, and run the command there`,
      );
    }
  }
}

/** Preserves the owner of the file, so that the service can read a file that root has changed. */
function preserveOwner(file: number, uid: number, gid: number): void {
  try {
    fchownSync(file, uid, gid);
  } catch {
    // Only root may set the owner. For another user the writer owns the file.
  }
}

/** The image runs as user 10001, which cannot read a copy that root has made with mode 0600. */
function notReadable(path: string): string {
  const owner = statSync(path).uid;
  const user = process.getuid?.();
  return `FILE: it belongs to user ${owner}, and this command runs as user ${user}; run the command as user ${owner}, or run first: chown ${user} FILE`;
}
