import { createParamDecorator, type ExecutionContext, type Type } from '@nestjs/common';
import type { Request } from 'express';
import { declareRouteParameters } from '../platform/http/route-parameters.js';
import { type BodyDeclaration, type BodyOptions, readValidatedBody } from './body.js';
import {
  type CheckedClient,
  type ClientCheckOptions,
  ClientCheckPipe,
  type ClientParameters,
  type UncheckedRequest,
} from './client-check.js';
import type { ParameterOf } from './parameter-of.js';

/** A request whose client, `Origin` and organization are checked. */
export interface ClientRequest<Body extends ClientParameters = ClientParameters> extends CheckedClient<Body> {
  body: Body;
}

/** How a route reads its body and checks the client. */
export interface ClientRequestOptions extends BodyOptions, ClientCheckOptions {}

const Read = createParamDecorator(
  async (declaration: BodyDeclaration & ClientCheckOptions, context: ExecutionContext): Promise<UncheckedRequest> => {
    const request = context.switchToHttp().getRequest<Request>();
    const parameters = (await readValidatedBody(request, declaration)) as ClientParameters;
    const { grant } = declaration;
    return { name: 'body', parameters, origin: request.headers.origin, ...(grant !== undefined && { grant }) };
  },
);

/**
 * Reads and validates the body, and checks the client that the body names (protocol §2.8 and §2.14): the client is
 * registered, a present `Origin` belongs to it, its limit `tokens` is not reached, and the organization admits it. The
 * log, the metrics and the audit name the client and the organization. With `grant` the client may use this grant.
 */
export function ClientRequest<Body extends ClientParameters>(
  body: Type<Body>,
  options: ClientRequestOptions = {},
): ParameterOf<ClientRequest<Body>> {
  return (controller, method, index) => {
    const { form = false, grant } = options;
    declareRouteParameters(controller, method, { body, form, checksClient: 'body', ...(grant && { grant }) });
    Read({ ...options, body }, ClientCheckPipe)(controller, method as string, index as number);
  };
}
