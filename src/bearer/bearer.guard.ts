import { type CanActivate, type ExecutionContext, Injectable } from '@nestjs/common';
import { BearerAuthentication } from './bearer-authentication.js';

/** Admits requests with a valid bearer token, of an agent or of a customer. */
@Injectable()
export class BearerGuard implements CanActivate {
  constructor(private readonly authentication: BearerAuthentication) {}

  /** @throws OAuthError `invalid_token` */
  async canActivate(context: ExecutionContext): Promise<boolean> {
    await this.authentication.authenticate(context.switchToHttp().getRequest());
    return true;
  }
}
