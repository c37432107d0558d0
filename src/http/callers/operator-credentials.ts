import { readFile, stat } from 'node:fs/promises';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { ForeignJwts } from '../../oauth/foreign-jwts.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { party } from '../../platform/audit/audit.js';
import type { AuditParty } from '../../platform/audit/audit-event.js';
import {
  type AdminRole,
  adminTokensViolation,
  isSufficientRole,
  MAX_ADMIN_TOKENS_BYTES,
  parseAdminTokens,
} from '../../platform/configuration/admin-tokens.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { WatchedFile } from '../../platform/files/watched-file.js';
import { MetricsRegistry } from '../../platform/metrics.js';
import { requestContext } from '../../platform/request-context/request-context.js';
import { equalInConstantTime, sha256 } from '../../platform/secret.js';
import type { Authorization } from './authorization.js';
import { FailedAuthentications } from './failed-authentications.js';
import { type Operator, operatorOf } from './operator-issuer.js';

declare module '../../platform/request-context/request-context.js' {
  interface RequestContext {
    /** The operator whose admin token authenticated the request. */
    operator?: AuditParty;
  }
}

/** With the time in which a changed file settles, a removed token stops working within 2 s. */
export const CHECK_INTERVAL_MS = 1_000;

export function operatorActor(): AuditParty {
  return requestContext.current()?.operator ?? party('operator');
}

/** The values of ADMIN_TOKENS, and the tokens of ADMIN_ISSUER. A change of the file takes effect without a restart. */
@Injectable()
export class OperatorCredentials implements OnApplicationBootstrap, OnApplicationShutdown {
  readonly areConfigured: boolean;
  private tokens: (Operator & { hash: string })[];
  private readonly file: WatchedFile | undefined;

  constructor(
    private readonly configuration: Configuration,
    private readonly failures: FailedAuthentications,
    metrics: MetricsRegistry,
    private readonly jwts: ForeignJwts,
  ) {
    const { ADMIN_TOKENS = '', hasAdminTokens, files } = configuration;
    this.areConfigured = hasAdminTokens;
    this.tokens = listedIn(ADMIN_TOKENS);
    const path = files.ADMIN_TOKENS;
    if (path === undefined) return;
    const rules = {
      read: () => textOf(path),
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
   * The operator whose admin token the bearer token of a request is. Another bearer token is a failed authentication,
   * because no other caller of these routes sends one.
   *
   * @throws OAuthError `insufficient_scope` if the role of the token does not suffice; 503 while the keys of the issuer
   *   of the token cannot be fetched
   */
  async match(authorization: Authorization | undefined, needed: AdminRole): Promise<Operator | undefined> {
    const token = authorization?.bearer;
    if (token === undefined || !this.areConfigured) return undefined;
    const { ADMIN_ISSUER } = this.configuration;
    const ofIssuer = async () => ADMIN_ISSUER && operatorOf(token, ADMIN_ISSUER, this.jwts);
    const found = this.listed(token) ?? (await ofIssuer()) ?? 'not an admin token';
    if (typeof found === 'string') {
      this.failures.record(found);
      return undefined;
    }
    if (found.roles.some((role) => isSufficientRole(role, needed))) return found;
    this.failures.record(`lacks the role ${needed}`, found.actor);
    throw OAuthError.insufficientRole(needed);
  }

  private listed(token: string): Operator | undefined {
    const hash = sha256(token);
    // compared with all tokens, so that the duration does not depend on which one matches
    const [matching] = this.tokens.filter((each) => equalInConstantTime(each.hash, hash));
    return matching;
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

function listedIn(text: string): (Operator & { hash: string })[] {
  return parseAdminTokens(text).map(({ name, role, token }) => ({
    actor: party('operator', name),
    roles: [role],
    hash: sha256(token),
  }));
}
