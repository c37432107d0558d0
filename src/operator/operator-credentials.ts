import { Injectable } from '@nestjs/common';
import type { AuditParty } from '../audit/audit-event.js';
import { parseAdminTokens } from '../platform/configuration/admin-tokens.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import { FailedAuthentications } from './failed-authentications.js';

declare module '../platform/request-context/request-context.js' {
  interface RequestContext {
    /** The name of the admin token that authenticated the request; `undefined` for a value of ADMIN_TOKEN. */
    operatorName?: string | undefined;
  }
}

/** The operator of the current request as an actor of audit events. Values of ADMIN_TOKEN have no name. */
export function operatorActor(): AuditParty {
  const id = requestContext.current()?.operatorName;
  return { kind: 'operator', ...(id !== undefined && { id }) };
}

/** The values of ADMIN_TOKEN and ADMIN_TOKENS. There are several while the operator rotates one. */
@Injectable()
export class OperatorCredentials {
  private readonly tokens: { name: string | undefined; hash: string }[];

  constructor(
    { ADMIN_TOKEN, ADMIN_TOKENS }: Configuration,
    private readonly failures: FailedAuthentications,
  ) {
    const unnamed = ADMIN_TOKEN?.split(',') ?? [];
    this.tokens = [
      ...unnamed.map((token) => ({ name: undefined, hash: sha256(token) })),
      ...parseAdminTokens(ADMIN_TOKENS ?? '').map(({ name, token }) => ({ name, hash: sha256(token) })),
    ];
  }

  /** Whether the operator has a token. */
  get areConfigured(): boolean {
    return this.tokens.length > 0;
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
    const [matching] = this.tokens.filter((each) => equalInConstantTime(each.hash, hash));
    if (!matching) this.failures.record('not an admin token');
    else requestContext.set({ operatorName: matching.name });
    return matching !== undefined;
  }
}
