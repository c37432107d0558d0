import { validateDocument } from './document-violations.js';
import { contentOf, type FileContent } from './file-content.js';
import type { RegistryDocument } from './registry-document.js';
import type { RegistrySource } from './registry-source.js';
import { withSecrets } from './secret-files.js';
import { RegistryTextError } from './yaml-document.js';

/**
 * A registry file that is rejected as a whole. Each violation has a path but no value, because a value may be a secret.
 */
export class RegistryFileError extends Error {
  constructor(readonly violations: string[]) {
    super(`the registry file is invalid:\n${violations.map((violation) => `  ${violation}`).join('\n')}`);
  }
}

/** A registry file that was read, with its violations. */
export interface ReadRegistryFile {
  document: RegistryDocument;
  violations: string[];
  content: FileContent;
}

/**
 * Reads a registry file with its secret files. The violations are unknown fields, wrong types and unreadable files.
 *
 * @throws RegistryFileError if the text is not YAML, or a field has the name of a prototype property
 */
export async function readRegistryFile(source: RegistrySource): Promise<ReadRegistryFile> {
  const plain = await source.parse().catch((error) => {
    throw error instanceof RegistryTextError ? new RegistryFileError(error.violations) : error;
  });
  const [replaced, violations] = withSecrets(plain, source.secrets);
  const content = await contentOf(source, plain.revision);
  const [document, formViolations] = await validateDocument(replaced);
  return { document, violations: [...violations, ...formViolations], content };
}
