import { Body, Controller, Get, Module, Post, Put, Query, type Type } from '@nestjs/common';
import { IsString } from 'class-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../packages/conformance-kit/src/test-database.js';
import {
  type AgentPrincipal,
  AnyOrigin,
  ApiRoute,
  type Browser,
  Caller,
  CallingBrowser,
  ClientQuery,
  ClientRequest,
  CustomerGuard,
  type CustomerPrincipal,
  ManagementController,
  PublicController,
  ValidatedBody,
  ValidatedQuery,
} from '../../src/public/grant.js';
import { startTestService } from '../support/test-service.js';

const described = ApiRoute({ summary: 'Described', response: '*/*' });

class RightBody {
  @IsString()
  client_id!: string;
}

class EmptyBody {
  client_id!: string;
}

class NamelessBody {
  client_id!: string;

  @IsString()
  other!: string;
}

@Controller('public/v2/customer/none')
class NoPortController {
  @Get()
  @described
  get() {}
}

@PublicController('v2/customer/none')
class WithoutDescriptionController {
  @Get()
  get() {}
}

@PublicController('v2/customer')
class TokenTwiceController {
  @Post('/token/')
  @AnyOrigin()
  @described
  post() {}
}

@PublicController('v2/customer/none')
class PutController {
  @Put()
  @described
  put() {}
}

@ManagementController('admin/none')
class AdminController {
  @Get()
  @described
  get() {}
}

@PublicController('none')
class NestBodyController {
  @Post()
  @described
  post(@Body() _body: RightBody) {}
}

@PublicController('none')
class NestQueryController {
  @Get()
  @described
  get(@Query('limit') _limit: string) {}
}

@PublicController('none')
class TwoBodiesController {
  @Post()
  @described
  post(@ValidatedBody(RightBody) _body: RightBody, @ClientRequest(RightBody) _request: ClientRequest<RightBody>) {}
}

@PublicController('none')
class EmptyBodyController {
  @Post()
  @described
  post(@ValidatedBody(EmptyBody) _body: EmptyBody) {}
}

@PublicController('none')
class NamelessController {
  @Post()
  @described
  post(@ClientRequest(NamelessBody) _request: ClientRequest<NamelessBody>) {}
}

@PublicController('v2/customer/none')
class UncheckedController {
  @Post()
  @described
  post(@ValidatedBody(RightBody) _body: RightBody) {}
}

@PublicController('v2/customer/none')
class UncheckedBrowserController {
  @Post()
  @described
  post(@ValidatedBody(RightBody) _body: RightBody, @CallingBrowser() _browser: Browser) {}
}

@PublicController('none')
class BrowserOfGuardController {
  @Get()
  @described
  get(@Caller(CustomerGuard) _customer: CustomerPrincipal, @CallingBrowser() _browser: Browser) {}
}

@PublicController('v2/customer/none')
class CookiesOfAnyOriginController {
  @Get()
  @AnyOrigin()
  @described
  get(@CallingBrowser() _browser: Browser) {}
}

@PublicController('v2/customer/none')
class CheckedAnyOriginController {
  @Get()
  @AnyOrigin()
  @described
  get(@ClientQuery(RightBody) _request: ClientQuery<RightBody>) {}
}

@PublicController('none')
class BodyOfGetController {
  @Get()
  @described
  get(@ClientRequest(RightBody) _request: ClientRequest<RightBody>) {}
}

@PublicController('none')
class TwoQueriesController {
  @Get()
  @described
  get(@ValidatedQuery(RightBody) _query: RightBody, @ClientQuery(RightBody) _request: ClientQuery<RightBody>) {}
}

@PublicController('none')
class NamelessQueryController {
  @Get()
  @described
  get(@ClientQuery(NamelessBody) _request: ClientQuery<NamelessBody>) {}
}

const UNCHECKED_COOKIES = 'reads cookies, but checks no client and no Origin; add @ClientRequest(…) or @ClientQuery(…)';

const REJECTED_AT_START: [controller: Type, message: string][] = [
  [
    NoPortController,
    'NoPortController: on no port; use @PublicController or @ManagementController instead of @Controller',
  ],
  [
    WithoutDescriptionController,
    "WithoutDescriptionController.get: has no description; add @ApiRoute({ summary: '…' })",
  ],
  [
    TokenTwiceController,
    'TokenController.token and TokenTwiceController.post: two routes are POST /v2/customer/token; choose another path',
  ],
  [
    PutController,
    'PutController.put: PUT is not possible on a customer route, because CORS allows GET, POST and DELETE; use one of these',
  ],
  [AdminController, 'AdminController.get: /admin is for the operator; choose another path'],
  [
    NestBodyController,
    'NestBodyController.post: @Body() does not read the body in this service; use @ValidatedBody(…)',
  ],
  [NestQueryController, 'NestQueryController.get: @Query() does not validate; use @ValidatedQuery(…)'],
  [
    TwoBodiesController,
    'TwoBodiesController.post: reads the body twice; remove @ValidatedBody, because @ClientRequest has the body',
  ],
  [
    EmptyBodyController,
    'EmptyBodyController.post: EmptyBody declares no parameters; add validation decorators to its fields',
  ],
  [NamelessController, 'NamelessController.post: NamelessBody needs a rule for client_id; add @IsString()'],
  [NamelessQueryController, 'NamelessQueryController.get: NamelessBody needs a rule for client_id; add @IsString()'],
  [
    UncheckedController,
    'UncheckedController.post: checks no client and no Origin, as a customer route must; add @ClientRequest(…), @ClientQuery(…) or @Caller(…), or @AnyOrigin() if pages of every origin may read its responses',
  ],
  [UncheckedBrowserController, `UncheckedBrowserController.post: ${UNCHECKED_COOKIES}`],
  [BrowserOfGuardController, `BrowserOfGuardController.get: ${UNCHECKED_COOKIES}`],
  [CookiesOfAnyOriginController, `CookiesOfAnyOriginController.get: ${UNCHECKED_COOKIES}`],
  [
    CheckedAnyOriginController,
    'CheckedAnyOriginController.get: compares the Origin, so it does not admit every Origin; remove @AnyOrigin()',
  ],
  [BodyOfGetController, 'BodyOfGetController.get: GET has no body; use @ValidatedQuery(…) or @ClientQuery(…)'],
  [
    TwoQueriesController,
    'TwoQueriesController.get: reads the query twice; remove @ValidatedQuery, because @ClientQuery has the query',
  ],
];

describe('the service does not start', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.remove());

  it.each(REJECTED_AT_START)('with %o', async (controller, message) => {
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
