import { Body, Controller, Get, Module, Post, Put, Query, type Type } from '@nestjs/common';
import { IsString } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import {
  type AgentPrincipal,
  AnyOrigin,
  ApiRoute,
  Caller,
  CallingBrowser,
  ClientQuery,
  ClientRequest,
  CustomerGuard,
  type CustomerPrincipal,
  ManagementController,
  PublicController,
  ValidatedBody,
} from '../../src/public/grant.js';
import { useDatabase } from '../support/databases.js';
import { startTestService } from '../support/test-service.js';

const described = ApiRoute({ summary: 'Described', response: '*/*' });
const AtCustomerRoute = PublicController('v2/customer/none');
const AtOtherRoute = PublicController('none');

class RightBody {
  @IsString()
  client_id!: string;
}

class NamelessBody {
  client_id!: string;

  @IsString()
  other!: string;
}

/** Decorators of parameters. Those of the service check the type of their parameter, which `handle` does not have. */
const BodyOf = (type: Type) => ValidatedBody(type as Type<object>) as ParameterDecorator;
const RequestOf = (type: Type, options?: { grant: string }) =>
  ClientRequest(type as Type<RightBody>, options) as ParameterDecorator;
const QueryOfClient = (type: Type) => ClientQuery(type as Type<RightBody>) as ParameterDecorator;
const Customer = Caller(CustomerGuard) as ParameterDecorator;
const Cookies = CallingBrowser() as ParameterDecorator;

/** A controller with one route, `handle`, which has these decorators. */
function controllerWith(path: ClassDecorator, route: MethodDecorator[], parameters: ParameterDecorator[] = []): Type {
  class FaultyController {
    handle() {}
  }
  const { prototype } = FaultyController;
  const descriptor = Object.getOwnPropertyDescriptor(prototype, 'handle') as PropertyDescriptor;
  for (const decorate of route) decorate(prototype, 'handle', descriptor);
  for (const [index, decorate] of parameters.entries()) decorate(prototype, 'handle', index);
  path(FaultyController);
  return FaultyController;
}

const UNCHECKED_COOKIES = 'reads cookies, but checks no client and no Origin; add @ClientRequest(…) or @ClientQuery(…)';
const reading = (route: MethodDecorator, ...parameters: ParameterDecorator[]) =>
  controllerWith(AtOtherRoute, [route, described], parameters);
const ofCustomers = (route: MethodDecorator[], ...parameters: ParameterDecorator[]) =>
  controllerWith(AtCustomerRoute, [...route, described], parameters);

/** The messages name the method, too. */
const OF_METHOD: [message: string, controller: Type][] = [
  ["has no description; add @ApiRoute({ summary: '…' })", controllerWith(AtCustomerRoute, [Get()])],
  [
    '/admin is for the operator; choose another path',
    controllerWith(ManagementController('admin/none'), [Get(), described]),
  ],
  [
    'PUT is not possible on a customer route, because CORS allows GET, POST and DELETE; use one of these',
    ofCustomers([Put()]),
  ],
  ['@Body() does not read the body in this service; use @ValidatedBody(…)', reading(Post(), Body())],
  ['@Query() does not validate; use @ValidatedQuery(…)', reading(Get(), Query('limit'))],
  [
    'checks no client and no Origin, as a customer route must; add @ClientRequest(…), @ClientQuery(…) or @Caller(…), or @AnyOrigin() if pages of every origin may read its responses',
    ofCustomers([Post()], BodyOf(RightBody)),
  ],
  [UNCHECKED_COOKIES, ofCustomers([Post()], BodyOf(RightBody), Cookies)],
  [UNCHECKED_COOKIES, reading(Get(), Customer, Cookies)],
  [UNCHECKED_COOKIES, ofCustomers([Get(), AnyOrigin()], Cookies)],
  [
    'compares the Origin, so it does not admit every Origin; remove @AnyOrigin()',
    ofCustomers([Get(), AnyOrigin()], QueryOfClient(RightBody)),
  ],
  [
    'no grant has the name letters; use the name in @GrantType',
    reading(Post(), RequestOf(RightBody, { grant: 'letters' })),
  ],
];

const REJECTED_AT_START: [message: string, controller: Type][] = [
  [
    'FaultyController: on no port; use @PublicController or @ManagementController instead of @Controller',
    controllerWith(Controller('public/v2/customer/none'), [Get(), described]),
  ],
  ...OF_METHOD.map(([message, controller]): [string, Type] => [`FaultyController.handle: ${message}`, controller]),
  [
    'FaultyController.handle and TokenController.token: two routes are POST /v2/customer/token; choose another path',
    controllerWith(PublicController('v2/customer'), [Post('/token/'), AnyOrigin(), described]),
  ],
];

describe('the service does not start', () => {
  const database = useDatabase(createTestDatabase);

  it.each(REJECTED_AT_START)('with a faulty route, whose error is: %s', async (message, controller) => {
    @Module({ controllers: [controller] })
    class FaultyModule {}
    await expect(startTestService({ modules: [FaultyModule], database })).rejects.toThrow(message);
  });
});

describe('the compiler', () => {
  it('rejects a change of the claims of a caller', () => {
    const change = ({ claims }: CustomerPrincipal, agent: AgentPrincipal) => {
      // @ts-expect-error: the claims are frozen
      claims.sub = 'another';
      // @ts-expect-error: the claims are frozen
      agent.claims.jti = 'another';
    };
    expect(change).toBeDefined();
  });

  it('rejects a parameter whose type differs from that of its decorator', () => {
    class Rejected {
      // @ts-expect-error: the class of the decorator is another one
      post(@ValidatedBody(RightBody) _body: NamelessBody) {}

      // @ts-expect-error: a customer is no agent
      get(@Caller(CustomerGuard) _agent: AgentPrincipal) {}
    }
    expect(Rejected).toBeDefined();
  });
});
