import { Get, HttpCode, Module, Param, Post } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import type { Principal } from '../../src/http/callers/principal.js';
import {
  AgentGuard,
  type AgentPrincipal,
  AnyOrigin,
  ApiRoute,
  BearerGuard,
  type Browser,
  Caller,
  CallingBrowser,
  ClientQuery,
  ClientRequest,
  CustomerGuard,
  type CustomerPrincipal,
  ManagementController,
  Optional,
  PublicController,
  ValidatedBody,
  ValidatedQuery,
} from '../../src/public/grant.js';
import type { Extension } from '../../src/token/extension.js';

export const DEVICE = '/v2/customer/device';

class StartBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;
}

class ApproveBody {
  @Matches(/^[A-Z]{6}$/, { message: 'must be six capital letters' })
  user_code!: string;
}

class FindQuery {
  @Optional()
  @Matches(/^\d+$/, { message: 'must be a number' })
  limit?: string;
}

class OfCallerBody {
  @IsString()
  client_id!: string;

  @Optional()
  @IsString()
  organization_id?: string;
}

class StartResponse {
  @IsString()
  client!: string;

  @IsString()
  organization!: string;

  @IsString()
  network!: string;
}

class TextResponse {
  @IsString()
  text!: string;
}

/** Routes of an extension, each with other decorators. */
@PublicController('v2/customer/device')
class DeviceController {
  @Post('start')
  @ApiRoute({ summary: 'Start', response: StartResponse })
  @HttpCode(200)
  start(@ClientRequest(StartBody) { client, organization, network }: ClientRequest<StartBody>): StartResponse {
    return { client: client.clientId, organization: organization.id, network };
  }

  @Post('approve')
  @ApiRoute({ summary: 'Approve', response: TextResponse })
  @HttpCode(200)
  approve(
    @Caller(CustomerGuard) customer: CustomerPrincipal,
    @ValidatedBody(ApproveBody, { form: true }) body: ApproveBody,
  ): TextResponse {
    return { text: `${customer.entityId} ${body.user_code}` };
  }

  @Get('requests')
  @ApiRoute({ summary: 'List', response: TextResponse })
  find(
    @Caller(AgentGuard('customers:own')) agent: AgentPrincipal,
    @ValidatedQuery(FindQuery) { limit = 'none' }: FindQuery,
  ): TextResponse {
    return { text: `${agent.agentId} ${limit}` };
  }

  @Post('browser')
  @ApiRoute({ summary: 'Read and set cookies', response: TextResponse })
  @HttpCode(200)
  withCookies(
    @ClientRequest(OfCallerBody) _request: ClientRequest<OfCallerBody>,
    @CallingBrowser() browser: Browser,
  ): TextResponse {
    browser.setCookie('device=1');
    return { text: `${browser.cookies} ${browser.origin}` };
  }

  @Post('screen-:number')
  @ApiRoute({ summary: 'Show a screen', response: TextResponse })
  @HttpCode(200)
  screen(
    @ClientRequest(OfCallerBody) _request: ClientRequest<OfCallerBody>,
    @CallingBrowser() _browser: Browser,
    @Param('number') number: string,
  ): TextResponse {
    return { text: number };
  }

  @Get('settings')
  @ApiRoute({ summary: 'Read the settings of a client', response: TextResponse })
  settings(
    @ClientQuery(StartBody) { client, organization, query }: ClientQuery<StartBody>,
    @CallingBrowser() browser: Browser,
  ): TextResponse {
    return { text: `${client.clientId} ${organization.id === query.organization_id} ${browser.cookies}` };
  }

  @Get('versions')
  @AnyOrigin()
  @ApiRoute({ summary: 'Read the versions', response: TextResponse })
  versions(): TextResponse {
    return { text: '1' };
  }

  @Post('may_be_empty')
  @ApiRoute({ summary: 'Read a body that may be empty', response: TextResponse })
  @HttpCode(200)
  mayBeEmpty(
    @Caller(CustomerGuard) _customer: CustomerPrincipal,
    @ValidatedBody(FindQuery, { mayBeEmpty: true }) { limit = 'none' }: FindQuery,
  ): TextResponse {
    return { text: limit };
  }

  @Post('of_caller')
  @ApiRoute({ summary: 'Check the client in the organization of the caller', response: TextResponse })
  @HttpCode(200)
  ofCaller(
    @Caller(BearerGuard) { kind }: Principal,
    @ClientRequest(OfCallerBody) { organization }: ClientRequest<OfCallerBody>,
  ): TextResponse {
    return { text: `${kind} ${organization?.id}` };
  }
}

@ManagementController('devices')
class DevicesController {
  @Get()
  @ApiRoute({ summary: 'Count', response: TextResponse })
  count(): TextResponse {
    return { text: '0' };
  }
}

@Module({ controllers: [DeviceController, DevicesController] })
class DeviceModule {}

/** An extension with routes, which needs nothing outside of the public surface. */
export const deviceExtension: Extension = { modules: [DeviceModule] };
