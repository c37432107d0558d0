import { Injectable, Module, type ModuleMetadata, type Type } from '@nestjs/common';
import {
  Clock,
  CustomerService,
  Database,
  type GrantBody,
  type GrantOptions,
  type GrantRequest,
  type GrantResult,
  GrantType,
  IdentityModule,
} from 'customer-authorization-service/grant';

type Behavior<Body extends GrantBody> = (
  request: GrantRequest<Body>,
  customers: CustomerService,
  services: { clock: Clock; database: Database },
) => Promise<GrantResult>;

/** A grant with its own module, which may also have routes and providers. */
export function grantOf<Body extends GrantBody>(
  name: string,
  options: GrantOptions<Body, undefined>,
  behaves: Behavior<Body>,
  { imports = [], providers = [], ...routes }: ModuleMetadata = {},
): { grant: Type; modules: Type[] } {
  @Injectable()
  @GrantType(name, options)
  class KitGrant {
    constructor(
      private readonly customers: CustomerService,
      readonly clock: Clock,
      readonly database: Database,
    ) {}

    grant = (request: GrantRequest<Body>): Promise<GrantResult> => behaves(request, this.customers, this);
  }
  const module = moduleOf({ imports: [IdentityModule, ...imports], providers: [...providers, KitGrant], ...routes });
  return { grant: KitGrant, modules: [module] };
}

export function moduleOf(metadata: ModuleMetadata): Type {
  @Module(metadata)
  class KitModule {}
  return KitModule;
}
