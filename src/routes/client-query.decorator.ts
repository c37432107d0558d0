import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import type { Request } from 'express';
import { parseQuery } from '../oauth/form.js';
import { readParameters } from '../oauth/parameters.js';
import { declareRouteParameters } from '../platform/http/route-parameters.js';
import {
  type CheckedClient,
  type ClientCheckOptions,
  ClientCheckPipe,
  type ClientParameters,
  type UncheckedRequest,
} from './client-check.js';
import type { ParameterOf } from './parameter-of.js';

/** A request without a body, whose client, `Origin` and organization are checked. */
export interface ClientQuery<Query extends ClientParameters = ClientParameters> extends CheckedClient<Query> {
  query: Query;
}

interface QueryDeclaration extends ClientCheckOptions {
  query: Type<ClientParameters>;
}

const Read = createParamDecorator(
  ({ query, ...options }: QueryDeclaration, context: ExecutionContext): UncheckedRequest => {
    const { url, headers } = context.switchToHttp().getRequest<Request>();
    return { name: 'query', parameters: readParameters(query, parseQuery(url)), origin: headers.origin, ...options };
  },
);

/**
 * Reads and validates the query, and checks the client that the query names, as `@ClientRequest` checks the client in
 * the body. It is for routes without a body.
 */
export function ClientQuery<Query extends ClientParameters>(
  query: Type<Query>,
  options: ClientCheckOptions = {},
): ParameterOf<ClientQuery<Query>> {
  return (controller, method, index) => {
    declareRouteParameters(controller, method, { query, checksClient: 'query', ...options });
    Read({ ...options, query }, ClientCheckPipe)(controller, method as string, index as number);
  };
}
