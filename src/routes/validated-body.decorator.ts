import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import { declareRouteParameters } from '../platform/http/route-parameters.js';
import { type BodyDeclaration, type BodyOptions, readValidatedBody } from './body.js';
import type { ParameterOf } from './parameter-of.js';

const Read = createParamDecorator((declaration: BodyDeclaration, context: ExecutionContext) =>
  readValidatedBody(context.switchToHttp().getRequest(), declaration),
);

/** Reads the JSON body of a request, and validates its parameters by the rules of a class (protocol §2.4 and §2.5). */
export function ValidatedBody<Body extends object>(body: Type<Body>, options: BodyOptions = {}): ParameterOf<Body> {
  return (controller, method, index) => {
    declareRouteParameters(controller, method, { body, form: options.form ?? false, validatesBody: true });
    Read({ ...options, body })(controller, method as string, index as number);
  };
}
