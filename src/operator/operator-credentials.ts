import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { party } from '../audit/audit.js';
import type { AuditParty } from '../audit/audit-event.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { FileErrors } from '../platform/files/watched-file.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { FailedAuthentications } from './failed-authentications.js';
import { OperatorTokens } from './operator-tokens.js';

declare module '../platform/request-context/request-context.js' {
  interface RequestContext {
    /** The name of the admin token that authenticated the request; `undefined` for a value of ADMIN_TOKEN. */
    operatorName?: string | undefined;
  }
}

/** The operator of the current request as an actor of audit events. Values of ADMIN_TOKEN have no name. */
export function operatorActor(): AuditParty {
  return party('operator', requestContext.current()?.operatorName);
}

/** The values of ADMIN_TOKEN and ADMIN_TOKENS. There are several while the operator rotates one. */
@Injectable()
export class OperatorCredentials implements OnApplicationBootstrap, OnApplicationShutdown {
  /** Whether the operator had a token, or a file for one, at the start of the process. */
  readonly areConfigured: boolean;
  private readonly variables: OperatorTokens[];

  constructor(
    configuration: Configuration,
    private readonly failures: FailedAuthentications,
    fileErrors: FileErrors,
  ) {
    this.areConfigured = configuration.hasAdminTokens;
    const named: OperatorTokens = new OperatorTokens('ADMIN_TOKENS', configuration, fileErrors, () => unnamed);
    const unnamed: OperatorTokens = new OperatorTokens('ADMIN_TOKEN', configuration, fileErrors, () => named);
    this.variables = [named, unnamed];
  }

  onApplicationBootstrap(): void {
    for (const { file } of this.variables) file?.start();
  }

  onApplicationShutdown(): void {
    for (const { file } of this.variables) file?.stop();
  }

  /**
   * Whether an `Authorization` header is an operator's. The request context then has the operator's name. A bearer
   * token of no operator is a failed authentication, because no other caller of these routes sends a bearer token.
   */
  match(authorization: string | undefined): boolean {
    const [, token] = /^Bearer (\S+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined || !this.areConfigured) return false;
    const hash = sha256(token);
    // compared with all tokens, so that the duration does not depend on which one matches
    const tokens = this.variables.flatMap(({ all }) => all);
    const [matching] = tokens.filter((each) => equalInConstantTime(each.hash, hash));
    if (!matching) this.failures.record('not an admin token');
    else requestContext.set({ operatorName: matching.name });
    return matching !== undefined;
  }
}
