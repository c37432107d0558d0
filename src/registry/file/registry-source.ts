import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { portionsOf } from '../../platform/database/value-list.js';
import { secretFilesIn } from './registry-document.js';
import { type PlainDocument, parseRegistryText } from './yaml-document.js';

const MAX_OPEN_FILES = 50;

/** A registry file and the secret files that it names, as they were read. */
export class RegistrySource {
  /** The contents of the secret files; `null` if a file cannot be read. */
  secrets: (string | null)[] = [];
  /** The paths of the secret files as the text names them, in its order. */
  private secretFiles: string[] = [];
  private document: Promise<PlainDocument> | undefined;

  private constructor(readonly bytes: Buffer) {}

  /**
   * Reads a file. If its bytes differ from those that were read before, and if it may name secret files, it is parsed.
   *
   * @throws Error if the file cannot be read
   */
  static async read(path: string, before?: RegistrySource): Promise<RegistrySource> {
    const bytes = await readFile(path);
    const unchanged = before?.bytes.equals(bytes) ? before : undefined;
    const source = new RegistrySource(unchanged?.bytes ?? bytes);
    source.secretFiles = unchanged?.secretFiles ?? (await source.findSecretFiles());
    source.secrets = await readSecrets(dirname(path), source.secretFiles);
    return source;
  }

  get text(): string {
    return this.bytes.toString('utf8');
  }

  /** Whether both have the same bytes in all files. */
  equals(other: RegistrySource): boolean {
    return this.bytes.equals(other.bytes) && JSON.stringify(this.secrets) === JSON.stringify(other.secrets);
  }

  /** @throws RegistryTextError */
  parse(): Promise<PlainDocument> {
    this.document ??= parseRegistryText(this.text);
    return this.document;
  }

  /** Releases the memory of the parsed text. */
  forgetDocument(): void {
    this.document = undefined;
  }

  private async findSecretFiles(): Promise<string[]> {
    const { text } = this;
    // YAML can hide a name by an escape with a backslash, and by nothing else
    if (!text.includes('_file') && !text.includes('\\')) return [];
    // a text that is no YAML names no files; the error is reported when the file is applied
    return this.parse().then(secretFilesIn, () => []);
  }
}

async function readSecrets(folder: string, names: string[]): Promise<(string | null)[]> {
  const read = (name: string) =>
    readFile(resolve(folder, name), 'utf8').then(
      (text) => text.trim(),
      () => null,
    );
  const secrets: (string | null)[] = [];
  for (const some of portionsOf(names, MAX_OPEN_FILES)) secrets.push(...(await Promise.all(some.map(read))));
  return secrets;
}
