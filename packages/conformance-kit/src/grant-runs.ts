import { type GrantMetadata, GrantRegistry, requestContext } from 'customer-authorization-service/testing-host';
import type { TestResponse } from './http-client.js';
import type { TestService } from './test-service.js';

/** Knows which requests have reached the grant of a service. All others were refused before, and used up no proof. */
export class GrantRuns {
  private readonly requestIds = new Set<string>();

  constructor({ application }: TestService, { name }: GrantMetadata) {
    const { handler } = application.get(GrantRegistry).named(name);
    const { grant } = handler;
    handler.grant = (request) => {
      this.requestIds.add(requestContext.required().id);
      return Reflect.apply(grant, handler, [request]);
    };
  }

  /** Whether the response comes from the grant. Forgets the request. */
  take({ headers }: TestResponse): boolean {
    return this.requestIds.delete(headers.get('x-request-id') ?? '');
  }
}
