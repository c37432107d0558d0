import { readFile } from 'node:fs/promises';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { adminTokensViolation, adminTokenViolation, parseAdminTokens } from '../platform/configuration/admin-tokens.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { WatchedFile } from '../platform/files/watched-file.js';
import type { Authorization } from '../platform/http/authorization.js';
import { MetricsRegistry } from '../platform/metrics.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { FailedAuthentications } from './failed-authentications.js';

declare module '../platform/request-context/request-context.js' {
  interface RequestContext {
    /** The name of the admin token that authenticated the request; `undefined` for a value of ADMIN_TOKEN. */
    operatorName?: string | undefined;
  }
}

/** With the time in which a changed file settles, a removed token stops working within 2 s. */
export const CHECK_INTERVAL_MS = 1_000;

const FORMS = {
  ADMIN_TOKEN: {
    violationOf: adminTokenViolation,
    parse: (text: string) => text.split(',').map((token) => ({ name: undefined, token })),
  },
  ADMIN_TOKENS: { violationOf: adminTokensViolation, parse: parseAdminTokens },
};

type Variable = keyof typeof FORMS;

interface OperatorToken {
  name: string | undefined;
  hash: string;
}

export function operatorActor(): AuditParty {
  return party('operator', requestContext.current()?.operatorName);
}

/** The values of ADMIN_TOKEN and ADMIN_TOKENS. A change of their files takes effect without a restart. */
@Injectable()
export class OperatorCredentials implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly areConfigured: boolean;
  private readonly tokens: Record<Variable, OperatorToken[]> = { ADMIN_TOKENS: [], ADMIN_TOKEN: [] };
  private readonly files: WatchedFile<string | null>[] = [];

  constructor(
    configuration: Configuration,
    private readonly failures: FailedAuthentications,
    private readonly metrics: MetricsRegistry,
  ) {
    this.areConfigured = configuration.hasAdminTokens;
    for (const variable of Object.keys(this.tokens) as Variable[]) {
      const text = configuration[variable];
      if (text !== undefined) this.tokens[variable] = listedIn(variable, text);
      const path = configuration.files[variable];
      if (path !== undefined) this.files.push(this.watched(variable, path, text ?? ''));
    }
  }

  onApplicationBootstrap(): void {
    for (const file of this.files) file.start();
  }

  onApplicationShutdown(): void {
    for (const file of this.files) file.stop();
  }

  /**
   * Names the operator in the request context. Another bearer token is a failed authentication, because no other caller
   * of these routes sends one.
   */
  match(authorization: Authorization | undefined): boolean {
    const token = authorization?.bearer;
    if (token === undefined || !this.areConfigured) return false;
    const hash = sha256(token);
    // compared with all tokens, so that the duration does not depend on which one matches
    const [matching] = Object.values(this.tokens)
      .flat()
      .filter((each) => equalInConstantTime(each.hash, hash));
    if (!matching) this.failures.record('not an admin token');
    else requestContext.set({ operatorName: matching.name });
    return matching !== undefined;
  }

  private watched(variable: Variable, path: string, current: string): WatchedFile<string | null> {
    const rules = {
      read: async () => (await readFile(path, 'utf8').catch(() => null))?.trim() ?? null,
      isSame: (one: string | null, other: string | null) => one === other,
      current,
      use: (text: string | null) => this.change(variable, text),
      checkIntervalMs: CHECK_INTERVAL_MS,
      partInUse: 'each earlier token that the file still lists',
    };
    return new WatchedFile<string | null>(`${variable}_FILE`, rules, this.metrics);
  }

  /**
   * A removed token must not stay valid because another line is malformed. So an invalid file leaves the tokens in use
   * that it still lists, and adds none. A file that cannot be read lists no token.
   */
  private change(variable: Variable, text: string | null): void {
    const listed = text === null ? [] : listedIn(variable, text);
    const violation = text === null ? 'the file cannot be read' : this.violationOf(variable, text, listed);
    const isUsed = (token: OperatorToken) =>
      this.tokens[variable].some(({ name, hash }) => token.name === name && token.hash === hash);
    this.tokens[variable] = violation === undefined ? listed : listed.filter(isUsed);
    if (violation !== undefined) throw new Error(violation);
  }

  /** The start of a process has the same rules. A token of both variables would have no certain name in the audit. */
  private violationOf(variable: Variable, text: string, listed: OperatorToken[]): string | undefined {
    const other = variable === 'ADMIN_TOKEN' ? 'ADMIN_TOKENS' : 'ADMIN_TOKEN';
    const isInBoth = listed.some(({ hash }) => this.tokens[other].some((each) => each.hash === hash));
    return FORMS[variable].violationOf(text) ?? (isInBoth ? `must not have a token of ${other}` : undefined);
  }
}

function listedIn(variable: Variable, text: string): OperatorToken[] {
  return FORMS[variable].parse(text).map(({ name, token }) => ({ name, hash: sha256(token) }));
}
