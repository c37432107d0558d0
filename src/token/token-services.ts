import { Injectable } from '@nestjs/common';
import { BearerAuthentication } from '../bearer/bearer-authentication.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { Registry } from '../registry/registry.js';
import { GrantRegistry } from './grant-registry.js';

/** The services that the checks of the token endpoint use. */
@Injectable()
export class TokenServices {
  constructor(
    readonly grants: GrantRegistry,
    readonly bearer: BearerAuthentication,
    readonly registry: Registry,
    readonly limits: RateLimits,
  ) {}
}
