import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import type { Request } from 'express';
import { parseQuery } from '../oauth/form.js';
import { readParameters } from '../oauth/parameters.js';
import { declareRouteParameters } from '../platform/http/route-parameters.js';
import type { ParameterOf } from './parameter-of.js';

const Read = createParamDecorator((query: Type<object>, context: ExecutionContext) =>
  readParameters(query, parseQuery(context.switchToHttp().getRequest<Request>().url)),
);

/** Reads the query of a request, and validates its parameters by the rules of a class (protocol §2.5). */
export function ValidatedQuery<Query extends object>(query: Type<Query>): ParameterOf<Query> {
  return (controller, method, index) => {
    declareRouteParameters(controller, method, { query, validatesQuery: true });
    Read(query)(controller, method as string, index as number);
  };
}
