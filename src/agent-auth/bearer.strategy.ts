import { Injectable } from '@nestjs/common';
import { PassportStrategy } from '@nestjs/passport';
import { Strategy } from 'passport-http-bearer';
import { AccessTokens } from '../access-token/access-tokens.js';
import { type Principal, principalOf } from './principal.js';

/** The one way in for a bearer, of an agent or a customer (specification, section 5). */
@Injectable()
export class BearerStrategy extends PassportStrategy(Strategy, 'bearer') {
  constructor(private readonly tokens: AccessTokens) {
    super();
  }

  /** @throws OAuthError `invalid_token` */
  validate(token: string): Principal {
    return principalOf(this.tokens.verify(token));
  }
}
