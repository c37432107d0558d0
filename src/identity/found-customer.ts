import { requestContext } from '../platform/request-context/request-context.js';
import type { Customer } from './customer.js';

declare module '../platform/request-context/request-context.js' {
  interface RequestContext {
    /** The customer that `Identities` returned last, so that the endpoint can check its group without a statement. */
    foundCustomer?: Pick<Customer, 'entityId' | 'groupId'>;
  }
}

/** Notes the customer in the context of the request, and returns it. */
export function noted<Found extends Customer>(customer: Found): Found {
  requestContext.set({ foundCustomer: customer });
  return customer;
}

/** @throws Error if the customer is of another group, because an id belongs to one group */
export function inGroup(customer: Customer, groupId: string): Customer {
  if (customer.groupId === groupId) return customer;
  throw new Error('createIfAbsent: the customer with this id belongs to another group; store one id for each group');
}
