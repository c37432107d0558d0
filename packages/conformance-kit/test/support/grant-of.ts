import type { Extension } from '@customer-authorization/service';
import {
  Clock,
  CustomerService,
  CustomersByKey,
  Database,
  defineExtension,
  type ExtensionParts,
  type GrantBody,
  type GrantOptions,
  type GrantRequest,
  type GrantResult,
  GrantType,
  IdentityCookies,
  JwtProofs,
  OneTimeCodes,
  UseCounter,
} from '@customer-authorization/service/grant';
import type { Type } from '@nestjs/common';

/** What the grants of the tests inject. */
export interface Services {
  clock: Clock;
  database: Database;
  uses: UseCounter;
  codes: OneTimeCodes;
  byKey: CustomersByKey;
  jwtProofs: JwtProofs;
  cookies: IdentityCookies;
}

type Behavior<Body extends GrantBody> = (
  request: GrantRequest<Body>,
  customers: CustomerService,
  services: Services,
) => Promise<GrantResult>;

/** An extension with one grant, and perhaps with routes, tables and providers. */
export function grantOf<Body extends GrantBody>(
  name: string,
  options: GrantOptions<Body, undefined>,
  behaves: Behavior<Body>,
  parts: ExtensionParts | ((grant: Type) => ExtensionParts) = {},
): { grant: Type } & Extension {
  @GrantType(name, options)
  class KitGrant implements Services {
    constructor(
      private readonly customers: CustomerService,
      readonly clock: Clock,
      readonly database: Database,
      readonly uses: UseCounter,
      readonly codes: OneTimeCodes,
      readonly byKey: CustomersByKey,
      readonly jwtProofs: JwtProofs,
      readonly cookies: IdentityCookies,
    ) {}

    grant = (request: GrantRequest<Body>): Promise<GrantResult> => behaves(request, this.customers, this);
  }
  const more = typeof parts === 'function' ? parts(KitGrant) : parts;
  return { grant: KitGrant, ...defineExtension({ ...more, grants: [KitGrant] }) };
}
