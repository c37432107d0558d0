import { createParamDecorator, type Type, UseGuards } from '@nestjs/common';
import type { CallerGuard } from '../bearer/bearer.guard.js';
import type { Principal } from '../bearer/principal.js';
import { requestContext } from '../platform/request-context/request-context.js';
import type { ParameterOf } from './parameter-of.js';

const Read = createParamDecorator(() => requestContext.required().principal);

/**
 * Admits only the callers that the guard admits, and gives the route the caller: the customer of `CustomerGuard`, or the
 * agent of `AgentGuard(scope)`. It adds the guard to the route.
 */
export function Caller<Authenticated extends Principal>(
  guard: Type<CallerGuard<Authenticated>>,
): ParameterOf<Authenticated> {
  return (controller, method, index) => {
    const handler = Object.getOwnPropertyDescriptor(controller, method) as PropertyDescriptor;
    UseGuards(guard)(controller, method as string, handler);
    Read()(controller, method as string, index as number);
  };
}
