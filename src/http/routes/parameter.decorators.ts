import { type CanActivate, createParamDecorator, type ExecutionContext, type Type, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import type { BodyOptions } from '../../oauth/request-body.js';
import { declareRouteParameters, type RouteParameters } from '../../platform/http/route-parameters.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import type { Organization } from '../../registry/organization.entity.js';
import type { CallerGuard } from '../callers/bearer.guard.js';
import type { Principal } from '../callers/principal.js';
import type { SecretGuard } from '../callers/secret.guards.js';
import type { Browser, ClientParameters } from './client-request.js';
import { browserOf, type DeclaredRequest, type RequestDeclaration, RequestPipe } from './request-pipe.js';

/** The compiler shows this text for a parameter whose type differs from that of its decorator. */
type Mismatch = 'the parameter must have the type that its decorator provides';

/**
 * Makes a decorator on a parameter of another type a compile error: it is the index only if the parameter's type admits
 * `Value`.
 */
type IndexFor<Method, Index extends number, Value> = Method extends (...parameters: infer Parameters) => unknown
  ? Value extends Parameters[Index]
    ? Index
    : Mismatch
  : Mismatch;

/**
 * A parameter decorator that provides a `Value`. The compiler passes the class, the method and the index of the
 * parameter as literal types, so that a parameter of another type does not compile.
 */
export type ParameterOf<Value> = <Controller extends object, Method extends keyof Controller, Index extends number>(
  controller: Controller,
  method: Method,
  index: IndexFor<Controller[Method], Index, Value>,
) => void;

/** How a route checks the client. */
export interface ClientCheckOptions {
  /** The `grant_type` of the grant that the route belongs to. Clients that may not use the grant get an error. */
  grant?: string;
}

/** The client of a request, after the service has checked it, its `Origin` and the organization. */
export interface CheckedClient<Parameters extends ClientParameters = ClientParameters> {
  client: ClientApplication;
  /**
   * The organization that the parameters name, else that of the bearer token. It admits the client. `undefined` if
   * neither names one.
   */
  organization: Parameters extends { organization_id: string } ? Organization : Organization | undefined;
  /**
   * The caller's network: an IPv4 address, or the /64 of an IPv6 address. Only compare it, or hash it; its form may
   * change. An unknown network has another value in each request, so count requests with the limits of the decorators.
   */
  network: string;
}

/** A request whose client, `Origin` and organization are checked. */
export interface ClientRequest<Body extends ClientParameters = ClientParameters> extends CheckedClient<Body> {
  body: Body;
}

/** A request without a body, whose client, `Origin` and organization are checked. */
export interface ClientQuery<Query extends ClientParameters = ClientParameters> extends CheckedClient<Query> {
  query: Query;
}

/** How a route reads its body and checks the client. */
export interface ClientRequestOptions extends BodyOptions, ClientCheckOptions {}

const requestOf = (context: ExecutionContext): Request => context.switchToHttp().getRequest();

const Checked = createParamDecorator(
  (declared: RequestDeclaration, context: ExecutionContext): DeclaredRequest => ({
    http: requestOf(context),
    declared,
  }),
);
const ReadCaller = createParamDecorator((_data: undefined, context: ExecutionContext) => requestOf(context).user);
const ReadBrowser = createParamDecorator((_data: undefined, context: ExecutionContext) =>
  browserOf(requestOf(context)),
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
  const { form = false, grant } = options;
  const declaration = { ...options, name: 'body', parameters: body, checksClient: true } as const;
  return checked(declaration, { body, form, checksClient: 'body', ...(grant && { grant }) });
}

/**
 * Reads and validates the query, and checks the client that the query names, as `@ClientRequest` checks the client in
 * the body. It is for routes without a body.
 */
export function ClientQuery<Query extends ClientParameters>(
  query: Type<Query>,
  options: ClientCheckOptions = {},
): ParameterOf<ClientQuery<Query>> {
  const declaration = { ...options, name: 'query', parameters: query, checksClient: true } as const;
  return checked(declaration, { query, checksClient: 'query', ...options });
}

/** Reads the JSON body of a request, and validates its parameters by the rules of a class (protocol §2.4 and §2.5). */
export function ValidatedBody<Body extends object>(body: Type<Body>, options: BodyOptions = {}): ParameterOf<Body> {
  const declaration = { ...options, name: 'body', parameters: body, checksClient: false } as const;
  return checked(declaration, { body, form: options.form ?? false });
}

/** Reads the query of a request, and validates its parameters by the rules of a class (protocol §2.5). */
export function ValidatedQuery<Query extends object>(query: Type<Query>): ParameterOf<Query> {
  return checked({ name: 'query', parameters: query, checksClient: false }, { query });
}

/**
 * Admits only the callers that the guard admits, and gives the route the caller: the customer of `CustomerGuard`, or
 * the agent of `AgentGuard(scope)`. It adds the guard to the route.
 */
export function Caller<Authenticated extends Principal>(
  guard: Type<CallerGuard<Authenticated>>,
): ParameterOf<Authenticated>;
/** @internal */
export function Caller<Authenticated>(guard: Type<SecretGuard<Authenticated>>): ParameterOf<Authenticated>;
export function Caller<Authenticated>(guard: Type<CanActivate>): ParameterOf<Authenticated> {
  return (controller, method, index) => {
    const handler = Object.getOwnPropertyDescriptor(controller, method) as PropertyDescriptor;
    UseGuards(guard)(controller, method as string, handler);
    ReadCaller()(controller, method as string, index as number);
  };
}

/** Gives a route the browser that calls, with its cookies. CORS allows credentials on such a route (protocol §2.9). */
export function CallingBrowser(): ParameterOf<Browser> {
  return (controller, method, index) => {
    declareRouteParameters(controller, method, { usesCookies: true });
    ReadBrowser()(controller, method as string, index as number);
  };
}

function checked<Value>(declaration: RequestDeclaration, read: RouteParameters): ParameterOf<Value> {
  const decorate = Checked(declaration, RequestPipe);
  return (controller, method, index) => {
    declareRouteParameters(controller, method, read);
    decorate(controller, method as string, index as number);
  };
}
