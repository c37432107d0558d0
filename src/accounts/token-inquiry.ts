import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsBoolean, IsIn, IsInt, IsString, ValidateNested } from 'class-validator';
import { type AccessTokenClaims, AccessTokens } from '../access-token/access-tokens.js';
import { Denylist } from '../access-token/denylist.js';
import { Actor, type Audience } from '../access-token/token-lineage.js';
import { Audit } from '../audit/audit.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional } from '../oauth/parameters.js';
import { RefreshTokens } from '../one-time-code/refresh-tokens.js';

/** What a service learns about a token (RFC 7662 section 2.2); of one that is not good, only that. */
export class Introspection implements Partial<AccessTokenClaims> {
  @IsBoolean()
  active: boolean;

  @Optional()
  @IsIn(['Bearer'])
  token_type?: 'Bearer';

  @Optional()
  @IsString()
  iss?: string;

  @Optional()
  @IsString()
  sub?: string;

  @Optional()
  @IsIn(['customer-api', 'agent-api'])
  aud?: Audience;

  @Optional()
  @IsString()
  client_id?: string;

  @Optional()
  @IsString()
  organization_id?: string;

  @Optional()
  @IsInt()
  iat?: number;

  @Optional()
  @IsInt()
  exp?: number;

  @Optional()
  @IsString()
  jti?: string;

  /** Of agents only. */
  @Optional()
  @IsString()
  scope?: string;

  /** The agent that obtained a customer's token (RFC 8693 section 4.1). */
  @Optional()
  @ValidateNested()
  @Type(() => Actor)
  act?: Actor;

  /** The ids of the tokens that the token descends from: it ends when one of them is revoked. */
  @Optional()
  @IsString({ each: true })
  ancestors?: string[];

  /** The generation of the customer or agent when access was granted. */
  @Optional()
  @IsInt()
  gen?: number;

  /** How many identity transfers led to the token. */
  @Optional()
  @IsInt()
  transfers?: number;
}

const OPERATOR = { kind: 'operator' } as const;

/** Answers whether a token is good, and ends tokens, for those who may. */
@Injectable()
export class TokenInquiry {
  constructor(
    private readonly tokens: AccessTokens,
    private readonly denylist: Denylist,
    private readonly refreshTokens: RefreshTokens,
    private readonly audit: Audit,
  ) {}

  /**
   * Whatever is not a valid token of these audiences is inactive, and nothing more is said.
   *
   * @param audiences those whose tokens may be asked about; `undefined`: all
   */
  async introspect(token: string, audiences: string[] | undefined): Promise<Introspection> {
    const claims = this.claimsOf(token);
    if (!claims || audiences?.includes(claims.aud) === false) return { active: false };
    if (await this.denylist.hasEnded(claims)) return { active: false };
    return { active: true, token_type: 'Bearer', ...claims };
  }

  /**
   * Ends an access token alone, or a refresh token with its whole family. What is not a token, or has ended already, is fine
   * (RFC 7009 section 2.2); so is what is somebody else's, which stays.
   *
   * @param clientId whose tokens may be ended; `undefined`: everybody's
   */
  async revoke(token: string, clientId: string | undefined): Promise<void> {
    const claims = this.claimsOf(token);
    if (!claims) return this.revokeRefreshToken(token, clientId);
    if (clientId !== undefined && claims.client_id !== clientId) return;
    await this.denylist.revokeToken(claims);
    this.tell(claims.jti, clientId);
  }

  private async revokeRefreshToken(token: string, clientId: string | undefined): Promise<void> {
    const family = await this.refreshTokens.familyOf(token, clientId);
    if (family === undefined) return;
    await this.refreshTokens.end(family);
    this.tell(family, clientId);
  }

  private tell(jti: string, clientId: string | undefined): void {
    const actor = clientId === undefined ? OPERATOR : ({ kind: 'client', id: clientId } as const);
    this.audit.record({ event: 'token.revoked', outcome: 'success', actor, subject: { kind: 'token', id: jti } });
  }

  private claimsOf(token: string): AccessTokenClaims | undefined {
    try {
      return this.tokens.verify(token);
    } catch (error) {
      if (error instanceof OAuthError) return undefined;
      throw error;
    }
  }
}
