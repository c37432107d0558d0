import { type DynamicModule, Global, Module, type Type } from '@nestjs/common';
import type { ClientApplication } from '../registry/client-application.entity.js';
import type { Organization } from '../registry/organization.entity.js';
import type { CustomerDataParticipant } from './customer-data-participant.js';

/** A request for which a customer is about to be created. */
export interface NewCustomer {
  client: ClientApplication;
  organization: Organization;
  /** The empty string without a group. */
  groupId: string;
  /** The parameters as the request has them: unchecked, of any type, also those that the grant does not declare. */
  parameters: Readonly<Record<string, unknown>>;
  /** The `Origin` header, if there is one. The service has checked that it is an origin of the client. */
  origin: string | undefined;
  /**
   * The caller's network: an IPv4 address, or the /64 of an IPv6 address. Only compare it, or hash it; its form may
   * change.
   */
  network: string;
}

/** @throws OAuthError to refuse the customer */
export type NewCustomerCheck = (request: NewCustomer) => void | Promise<void>;

/** What the service calls of an extension, apart from its grants and controllers. */
export class ExtensionHooks {
  participants: Type<CustomerDataParticipant>[] = [];
  beforeNewCustomer?: NewCustomerCheck | undefined;
  customerKeyFile?: string | undefined;
}

@Global()
@Module({})
export class ExtensionHooksModule {
  static forRoot(hooks: ExtensionHooks): DynamicModule {
    return {
      module: ExtensionHooksModule,
      providers: [{ provide: ExtensionHooks, useValue: hooks }],
      exports: [ExtensionHooks],
    };
  }
}
