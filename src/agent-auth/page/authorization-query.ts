import { IsString } from 'class-validator';
import { Optional } from '../../oauth/parameters.js';
import { declaredProperties } from '../../platform/declared-properties.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';

/**
 * The query parameters of the authorization page, for the OpenAPI document. Their rules are in authorization-checks.ts.
 */
export class AuthorizationQuery {
  @IsString()
  response_type: string;

  @IsString()
  client_id: string;

  @IsString()
  redirect_uri: string;

  @Optional()
  @IsString()
  state?: string;

  @Optional()
  @IsString()
  scope?: string;

  @Optional()
  @IsString()
  code_challenge?: string;

  @Optional()
  @IsString()
  code_challenge_method?: string;

  @Optional()
  @IsString()
  prompt?: string;

  @Optional()
  @IsString()
  flow?: string;
}

export const PARAMETER_NAMES = declaredProperties(AuthorizationQuery);

/**
 * The parameters of the query string, and the values that the checks of authorization-checks.ts set. A check can read
 * the values that the checks before it have set.
 */
export class AuthorizationParameters {
  client: ClientApplication;
  redirectUri: string;
  private readonly query: URLSearchParams;

  constructor(query: string) {
    this.query = new URLSearchParams(query);
  }

  /** The value of a parameter. A parameter without a value counts as omitted (RFC 6749 §3.1). */
  value(name: string): string | undefined {
    return this.query.get(name) || undefined;
  }

  values(name: string): string[] {
    return this.query.getAll(name);
  }

  /** A web application gets its token at the page. Any other client gets a code. */
  get expectedResponseType(): 'code' | 'token' {
    return this.client.clientType === 'web' ? 'token' : 'code';
  }

  get prompts(): string[] {
    return this.value('prompt')?.split(' ') ?? [];
  }
}
