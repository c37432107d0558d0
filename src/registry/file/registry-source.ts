import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { portionsOf } from '../../platform/database/value-list.js';
import { secretFilesIn } from './registry-document.js';
import { type PlainDocument, parseRegistryText } from './yaml-document.js';

/** The paths of the secret files that a text names, if they are known without parsing the text. */
export type FindSecretFiles = (text: string) => Promise<string[] | undefined>;

const MAX_OPEN_FILES = 50;

/** A registry file and the secret files that it names, as they were read. */
export class RegistrySource {
  private document: Promise<PlainDocument> | undefined;

  private constructor(
    readonly bytes: Buffer,
    /** The paths of the secret files as the text names them, in its order. */
    readonly secretFiles: string[],
    /** The contents of the secret files; `null` if a file cannot be read. */
    readonly secrets: (string | null)[],
  ) {}

  /**
   * Reads a file. If its bytes differ from those that were read before, and if it may name secret files, it is parsed.
   *
   * @throws Error if the file cannot be read
   */
  static async read(path: string, before?: RegistrySource, findSecretFiles?: FindSecretFiles): Promise<RegistrySource> {
    const bytes = await readFile(path);
    const isUnchanged = before?.bytes.equals(bytes) ?? false;
    const first = new RegistrySource(bytes, [], []);
    const secretFiles = isUnchanged && before ? before.secretFiles : await first.findSecretFiles(findSecretFiles);
    const secrets = await readSecrets(dirname(path), secretFiles);
    const source = new RegistrySource(isUnchanged && before ? before.bytes : bytes, secretFiles, secrets);
    source.document = first.document;
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

  private async findSecretFiles(find: FindSecretFiles | undefined): Promise<string[]> {
    const { text } = this;
    // YAML can hide a name by an escape with a backslash, and by nothing else
    if (!text.includes('_file') && !text.includes('\\')) return [];
    const known = await find?.(text);
    if (known) return known;
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
