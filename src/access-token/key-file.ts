import {
  closeSync,
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
import { type PrivateKeySet, readKeySet } from './key-set.js';

/** A file of keys, as an operator changes it: whole or not at all, and by one at a time. */
export class KeyFile {
  private readonly path: string;

  /** @throws Error when there is no such file */
  constructor(path: string) {
    try {
      this.path = realpathSync(path);
    } catch {
      throw new Error('FILE: the file cannot be read');
    }
  }

  /** @throws Error that tells which key breaks which rule, without a value */
  read(): PrivateKeySet {
    const text = readFileSync(this.path, 'utf8');
    try {
      readKeySet(text);
    } catch (error) {
      throw new Error(`FILE: ${(error as Error).message}`);
    }
    const { keys }: PrivateKeySet = JSON.parse(text);
    return { keys: keys.map((key) => ({ ...key, nbf: key.nbf ?? 0 })) };
  }

  /** @throws Error as `read` and `change` do, in which case the file stays as it was; or when another is changing it */
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

  /** The draft is the lock, too: there is one at a time. */
  private openDraft(): { path: string; file: number } {
    const path = `${this.path}.new`;
    try {
      const { mode, uid, gid } = statSync(this.path);
      const file = openSync(path, 'wx', mode & 0o777);
      keepOwner(file, uid, gid);
      return { path, file };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw new Error('FILE: its folder cannot be written');
      throw new Error(`FILE: another process is changing it; if none is, remove ${path}`);
    }
  }
}

/** Root changes the file for the service, which goes on reading it; anybody else makes it its own. */
function keepOwner(file: number, uid: number, gid: number): void {
  try {
    fchownSync(file, uid, gid);
  } catch {
    // not root
  }
}
