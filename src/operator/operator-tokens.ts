import { readFile } from 'node:fs/promises';
import { adminTokensViolation, adminTokenViolation, parseAdminTokens } from '../platform/configuration/admin-tokens.js';
import type { Configuration } from '../platform/configuration/configuration.js';
import { type FileErrors, WatchedFile } from '../platform/files/watched-file.js';
import { sha256 } from '../platform/secret.js';

/** With the time in which a changed file settles, a removed token stops working within 2 s. */
export const CHECK_INTERVAL_MS = 1_000;

/** The hash of a bearer token of the operator. The tokens of ADMIN_TOKEN have no name. */
interface OperatorToken {
  name: string | undefined;
  hash: string;
}

/** How the tokens of a variable are written. */
const FORMS = {
  ADMIN_TOKEN: {
    violationOf: adminTokenViolation,
    parse: (text: string) => text.split(',').map((token) => ({ name: undefined, token })),
  },
  ADMIN_TOKENS: { violationOf: adminTokensViolation, parse: parseAdminTokens },
};

/**
 * The tokens of one variable. If the variable was given as a file, changes of the file take effect without a restart.
 *
 * A removed token must not stay valid because another line of the file is malformed. So an invalid file leaves the
 * tokens in use that it still lists, and adds none. A file that cannot be read lists no token.
 */
export class OperatorTokens {
  private tokens: OperatorToken[];
  readonly file: WatchedFile<string | null> | undefined;

  constructor(
    private readonly variable: keyof typeof FORMS,
    configuration: Configuration,
    fileErrors: FileErrors,
    private readonly ofOtherVariable: () => OperatorTokens,
  ) {
    const text = configuration[variable];
    const path = configuration.files[variable];
    this.tokens = text === undefined ? [] : this.listedIn(text);
    if (path === undefined) return;
    const rules = {
      read: () =>
        readFile(path, 'utf8').then(
          (read) => read.trim(),
          () => null,
        ),
      isSame: (one: string | null, other: string | null) => one === other,
      current: text ?? '',
      use: (changed: string | null) => this.change(changed),
      checkIntervalMs: CHECK_INTERVAL_MS,
      partInUse: 'each earlier token that the file still lists',
    };
    this.file = new WatchedFile<string | null>(`${variable}_FILE`, rules, fileErrors);
  }

  get all(): readonly OperatorToken[] {
    return this.tokens;
  }

  private change(text: string | null): void {
    const listed = text === null ? [] : this.listedIn(text);
    const violation =
      text === null ? 'the file cannot be read' : (FORMS[this.variable].violationOf(text) ?? this.conflictOf(listed));
    if (violation === undefined) {
      this.tokens = listed;
      return;
    }
    this.tokens = this.tokens.filter(({ name, hash }) =>
      listed.some((each) => each.name === name && each.hash === hash),
    );
    throw new Error(violation);
  }

  /** The start of a process has the same rule. Otherwise the audit could not say who used the token. */
  private conflictOf(listed: OperatorToken[]): string | undefined {
    const other = this.ofOtherVariable();
    const isInBoth = listed.some(({ hash }) => other.tokens.some((each) => each.hash === hash));
    return isInBoth ? `must not have a token of ${other.variable}` : undefined;
  }

  private listedIn(text: string): OperatorToken[] {
    return FORMS[this.variable].parse(text).map(({ name, token }) => ({ name, hash: sha256(token) }));
  }
}
