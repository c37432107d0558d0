import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { portionsOf } from '../../platform/database/value-list.js';
import { type SecretFiles, secretFilesIn } from './registry-document.js';
import { type PlainDocument, parseRegistryText, RegistryFileError } from './yaml-document.js';

const MAX_OPEN_FILES = 50;

export class RegistrySource {
  secrets: SecretFiles = new Map();
  private document: Promise<PlainDocument> | undefined;

  private constructor(readonly bytes: Buffer) {}

  /** Parses a new text that may name secret files. @throws RegistryFileError if the file cannot be read */
  static async read(path: string, before?: RegistrySource): Promise<RegistrySource> {
    const bytes = await readFile(path).catch(() => {
      throw new RegistryFileError(['the file cannot be read']);
    });
    if (!isUtf8(bytes)) throw new RegistryFileError(['must be UTF-8']);
    const unchanged = before?.bytes.equals(bytes) ? before : undefined;
    const source = new RegistrySource(unchanged?.bytes ?? bytes);
    const names = unchanged ? [...unchanged.secrets.keys()] : await source.findSecretFiles();
    source.secrets = await readSecrets(dirname(path), names);
    return source;
  }

  get text(): string {
    return this.bytes.toString('utf8');
  }

  get secretsText(): string {
    return JSON.stringify([...this.secrets]);
  }

  equals(other: RegistrySource): boolean {
    return this.bytes.equals(other.bytes) && this.secretsText === other.secretsText;
  }

  /** @throws RegistryFileError */
  parse(): Promise<PlainDocument> {
    this.document ??= parseRegistryText(this.text);
    return this.document;
  }

  forgetDocument(): void {
    this.document = undefined;
  }

  private async findSecretFiles(): Promise<string[]> {
    const { text } = this;
    // YAML can hide a name only with an escape that begins with a backslash
    if (!text.includes('_file') && !text.includes('\\')) return [];
    // a text that is no YAML names no files; the error is reported when the file is applied
    return this.parse().then(secretFilesIn, () => []);
  }
}

async function readSecrets(folder: string, names: string[]): Promise<SecretFiles> {
  const secrets = new Map(names.map((name): [string, string | null] => [name, null])); // in the order of the names
  const read = async (name: string) => {
    const bytes = await readFile(resolve(folder, name)).catch(() => undefined);
    if (bytes && isUtf8(bytes)) secrets.set(name, bytes.toString('utf8').trim());
  };
  for (const some of portionsOf(names, MAX_OPEN_FILES)) await Promise.all(some.map(read));
  return secrets;
}
