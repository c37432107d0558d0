import { readFile, stat } from 'node:fs/promises';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { type AdminRole, isSufficientRole } from '../platform/configuration/admin-role.js';
import {
  adminTokensViolation,
  MAX_ADMIN_TOKENS_BYTES,
  parseAdminTokens,
} from '../platform/configuration/admin-tokens.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { WatchedFile } from '../platform/files/watched-file.js';
import type { Authorization } from '../platform/http/authorization.js';
import { MetricsRegistry } from '../platform/metrics.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { FailedAuthentications } from './failed-authentications.js';

declare module '../platform/request-context/request-context.js' {
  interface RequestContext {
    /** The name of the admin token that authenticated the request. */
    operatorName?: string;
  }
}

/** With the time in which a changed file settles, a removed token stops working within 2 s. */
export const CHECK_INTERVAL_MS = 1_000;

interface OperatorToken {
  name: string;
  role: AdminRole;
  hash: string;
}

export function operatorActor(): AuditParty {
  return party('operator', requestContext.current()?.operatorName);
}

/** The values of ADMIN_TOKENS. A change of its file takes effect without a restart. */
@Injectable()
export class OperatorCredentials implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly areConfigured: boolean;
  private tokens: OperatorToken[];
  private readonly file: WatchedFile<string> | undefined;

  constructor(
    { ADMIN_TOKENS = '', hasAdminTokens, files }: Configuration,
    private readonly failures: FailedAuthentications,
    metrics: MetricsRegistry,
  ) {
    this.areConfigured = hasAdminTokens;
    this.tokens = listedIn(ADMIN_TOKENS);
    const path = files.ADMIN_TOKENS;
    if (path === undefined) return;
    const rules = {
      read: () => textOf(path),
      isSame: (one: string, other: string) => one === other,
      current: ADMIN_TOKENS,
      use: (text: string) => this.replace(text),
      checkIntervalMs: CHECK_INTERVAL_MS,
    };
    this.file = new WatchedFile('ADMIN_TOKENS_FILE', rules, metrics);
  }

  onApplicationBootstrap(): void {
    this.file?.start();
  }

  onApplicationShutdown(): void {
    this.file?.stop();
  }

  /**
   * Whether the bearer token of a request is an admin token. Another bearer token is a failed authentication, because no
   * other caller of these routes sends one. Names the operator in the request context.
   *
   * @throws OAuthError `insufficient_scope` if the role of the token does not suffice
   */
  match(authorization: Authorization | undefined, needed: AdminRole): boolean {
    const token = authorization?.bearer;
    if (token === undefined || !this.areConfigured) return false;
    const hash = sha256(token);
    // compared with all tokens, so that the duration does not depend on which one matches
    const [matching] = this.tokens.filter((each) => equalInConstantTime(each.hash, hash));
    if (!matching) {
      this.failures.record('not an admin token');
      return false;
    }
    requestContext.set({ operatorName: matching.name });
    if (isSufficientRole(matching.role, needed)) return true;
    this.failures.record(`lacks the role ${needed}`, operatorActor());
    throw OAuthError.insufficientRole(needed);
  }

  /** An empty file is valid and lists no token. @throws Error without values of the file, which then changes nothing */
  private replace(text: string): void {
    const violation = text === '' ? undefined : adminTokensViolation(text);
    if (violation !== undefined) throw new Error(violation);
    this.tokens = listedIn(text);
  }
}

async function textOf(path: string): Promise<string> {
  if ((await stat(path)).size > MAX_ADMIN_TOKENS_BYTES) throw new Error('the file is too large');
  return (await readFile(path, 'utf8')).trim();
}

function listedIn(text: string): OperatorToken[] {
  return parseAdminTokens(text).map(({ name, role, token }) => ({ name, role, hash: sha256(token) }));
}
