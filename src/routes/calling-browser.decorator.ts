import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import { type Browser, browserOf } from '../platform/http/browser.js';
import { declareRouteParameters } from '../platform/http/route-parameters.js';
import type { ParameterOf } from './parameter-of.js';

const Read = createParamDecorator((_data: undefined, context: ExecutionContext) =>
  browserOf(context.switchToHttp().getRequest()),
);

/**
 * Gives a route the browser that calls, with its cookies. CORS allows credentials on such a route (protocol §2.9).
 */
export function CallingBrowser(): ParameterOf<Browser> {
  return (controller, method, index) => {
    declareRouteParameters(controller, method, { usesCookies: true });
    Read()(controller, method as string, index as number);
  };
}
