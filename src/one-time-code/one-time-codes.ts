import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Denylist, type RevocableToken } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { Database } from '../platform/database/database.js';
import { timeOf } from '../platform/database/sql-time.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { traced } from '../platform/tracing/tracing.js';
import type { CodeKind } from './one-time-code.entity.js';
import { isPkceSatisfied } from './pkce.js';

/** What a code stands for. */
export interface CodeContent {
  clientId: string;
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  scope?: string;
  redirectUri?: string;
  codeChallenge?: string | undefined;
  /** The bearer without which the code is void. */
  madeWith?: RevocableToken;
}

/** What whoever redeems a code must show beside it. */
export interface CodeProof {
  clientId: string;
  redirectUri?: string | undefined;
  codeVerifier?: string | undefined;
  /** When the request came, in milliseconds since 1970: what came after a redemption was done is a replay. */
  arrivedAt: number;
}

export interface RedeemedCode {
  subject: string;
  organizationId: string;
  scope: string | null;
  /** When what it was made with was issued, in milliseconds since 1970; 0 where it was made with nothing. */
  grantedAt: number;
  /** The `jti` of the token to be given for it, so that a replay can end that token. */
  attempt: string;
}

/** What the audit is told of a code: everything but the code. */
interface ToldCode {
  kind: CodeKind;
  clientId: string;
  subject: string;
  organizationId: string;
  /** Of the token it gave. */
  jti?: string;
}

interface CodeRow {
  kind: CodeKind;
  client_id: string;
  subject: string;
  organization_id: string;
  scope: string | null;
  redirect_uri: string | null;
  code_challenge: string | null;
  made_with: string | null;
  expires_at: Date | string;
  consumed_at: Date | string | null;
  consumed_by: string | null;
}

const COLUMNS = 'kind, client_id, subject, organization_id, scope, redirect_uri, code_challenge, made_with, expires_at';
const INSERT = `INSERT INTO one_time_code (hash, ${COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;
const SELECT = `SELECT ${COLUMNS}, consumed_at, consumed_by FROM one_time_code WHERE hash = ?`;

/** Of parallel attempts exactly one matches the row; the same attempt, sent again after a lost answer, matches again. */
const REDEEM = `
  UPDATE one_time_code SET consumed_at = COALESCE(consumed_at, ?), consumed_by = ?
  WHERE hash = ? AND expires_at > ? AND (consumed_at IS NULL OR consumed_by = ?)`;

/**
 * Milliseconds until a redemption counts as done, and is answered. What comes until then raced it, and what comes later
 * replays it; so this is as long as requests that were sent together may take to be read from their sockets, on every
 * process: the longer, the longer the SELECT took, since that is how busy all of them are.
 */
const settling = (select: number) => Math.min(500, 20 + 3 * select);

/** Codes that can be redeemed once: transfer tokens and authorization codes (contract, section 3). */
@Injectable()
export class OneTimeCodes {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly denylist: Denylist,
    private readonly configuration: Configuration,
    private readonly audit: Audit,
  ) {}

  /** A new code, valid for `ttl` seconds; only its hash is kept. */
  async issue(kind: CodeKind, content: CodeContent, ttl: number): Promise<string> {
    const code = `${this.configuration.TOKEN_REGION}:${randomSecret('base64url')}`;
    const { clientId, subject, organizationId, scope = null, redirectUri = null, codeChallenge = null } = content;
    const madeWith = content.madeWith ? JSON.stringify(markOf(content.madeWith)) : null;
    const expires = new Date(this.clock.now() + ttl * 1000);
    const values = [kind, clientId, subject, organizationId, scope, redirectUri, codeChallenge, madeWith, expires];
    await this.database.insert(INSERT, [sha256(code), ...values]);
    this.tell('issued', 'success', { kind, clientId, subject, organizationId });
    return code;
  }

  /**
   * Redeems a code. What does not fit (client, redirect URI, verifier) is refused and burns nothing; a replay ends the
   * tokens that the first redemption gave.
   *
   * @throws OAuthError `invalid_grant`
   */
  redeem(kind: CodeKind, code: string, proof: CodeProof): Promise<RedeemedCode> {
    return traced('redemption', { 'cas.code_kind': kind }, () => this.redeemOnce(kind, code, proof));
  }

  private async redeemOnce(kind: CodeKind, code: string, proof: CodeProof): Promise<RedeemedCode> {
    const begun = this.clock.now();
    const hash = sha256(code);
    const [row] = await this.database.select<CodeRow>(SELECT, [hash]);
    const fault = row ? this.faultOf(row, kind, proof) : 'unknown';
    if (!row || fault) throw OAuthError.invalidGrant(`code: ${fault}`);
    if (row.consumed_at !== null) await this.refuseUsed(row, proof.arrivedAt);
    if (timeOf(row.expires_at) <= this.clock.now()) throw OAuthError.invalidGrant('code: expired');
    await this.refuseVoid(row);
    const attempt = randomUUID();
    const now = this.clock.now();
    const done = now + settling(now - begun);
    const state = [new Date(done), attempt, hash, new Date(now), attempt];
    if ((await this.database.changeAgain(REDEEM, state)) !== 1) {
      throw OAuthError.invalidGrant('code: another attempt was faster');
    }
    await this.clock.reach(done); // a replay comes after the answer, and so after consumed_at
    const { subject, organization_id: organizationId, scope, made_with } = row;
    this.tell('redeemed', 'success', { kind, clientId: row.client_id, subject, organizationId, jti: attempt });
    return { subject, organizationId, scope, attempt, grantedAt: made_with ? JSON.parse(made_with).iat * 1000 : 0 };
  }

  private faultOf(row: CodeRow, kind: CodeKind, proof: CodeProof): string | undefined {
    if (row.kind !== kind) return 'of another kind';
    if (row.client_id !== proof.clientId) return 'of another client';
    if (row.redirect_uri !== null && row.redirect_uri !== proof.redirectUri) return 'sent to another redirect_uri';
    if (!isPkceSatisfied(row.code_challenge, proof.codeVerifier)) return 'the verifier does not fit';
    return undefined;
  }

  private async refuseVoid({ made_with }: CodeRow): Promise<void> {
    if (made_with === null || !(await this.denylist.revokes(JSON.parse(made_with)))) return;
    throw OAuthError.invalidGrant('code: the bearer it was made with is revoked');
  }

  /** Whoever came when the code was already used may be a thief, or the owner after a thief: what it gave ends. */
  private async refuseUsed(row: CodeRow, arrivedAt: number): Promise<never> {
    if (arrivedAt <= timeOf(row.consumed_at as string))
      throw OAuthError.invalidGrant('code: another attempt was faster');
    const jti = row.consumed_by as string;
    // a family: what was refreshed from the first token ends with it
    await this.denylist.revokeFamily(jti, this.configuration.longestTokenLife);
    const { kind, client_id: clientId, subject, organization_id: organizationId } = row;
    this.tell('replayed', 'failure', { kind, clientId, subject, organizationId, jti });
    throw OAuthError.invalidGrant('code: replayed');
  }

  private tell(what: 'issued' | 'redeemed' | 'replayed', outcome: 'success' | 'failure', code: ToldCode): void {
    const { kind, clientId, subject, organizationId, jti } = code;
    const isTransfer = kind === 'transfer';
    this.audit.record({
      event: `${isTransfer ? 'transfer_token' : 'authorization_code'}.${what}`,
      outcome,
      actor: { kind: 'client', id: clientId },
      subject: { kind: isTransfer ? 'customer' : 'agent', id: subject },
      organizationId,
      clientId,
      ...(jti && { details: { jti } }),
    });
  }
}

/** Of all claims of a bearer, those that the denylist asks for. */
function markOf({ jti, sub, client_id, iat }: RevocableToken): Omit<RevocableToken, 'exp'> {
  return { jti, sub, client_id, iat };
}
