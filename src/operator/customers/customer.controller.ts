import { Delete, Get, HttpCode, Param, Post, Req, UseGuards } from '@nestjs/common';
import { IsString } from 'class-validator';
import type { Request } from 'express';
import { OperatorGuard, RequiredRole } from '../../http/callers/operator.guard.js';
import { operatorActor } from '../../http/callers/operator-credentials.js';
import { ValidatedBody } from '../../http/routes/parameter.decorators.js';
import { CustomerErasure } from '../../identity/customer-erasure.js';
import {
  CUSTOMER_PATH,
  CustomerExport,
  CustomerPage,
  CustomerRecord,
  CustomerRecords,
} from '../../identity/customer-records.js';
import { EndSessionsBody, EndSessionsService } from '../../identity/end-sessions.service.js';
import { OrganizationUsers } from '../../identity/users/organization-users.js';
import { queryOf, readStrictQuery } from '../../oauth/form.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { PageQuery } from '../../oauth/pages.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty, ApiRoute } from '../../platform/http/api-route.js';
import { ManagementController } from '../../platform/http/listener.decorators.js';
import { UUID } from '../../platform/uuid.js';
import { IsIdText, IsUuid } from '../../platform/validation/text-rules.js';
import { Optional } from '../../platform/validation/validation.js';

class CustomerQuery extends PageQuery {
  @IsUuid()
  @ApiProperty('The organization of the customers.', EXAMPLE.organizationId)
  organization_id!: string;

  @Optional()
  @IsString()
  @IsIdText()
  @ApiProperty("The organization's own id of the user. If omitted, the response lists customers.", EXAMPLE.externalId)
  external_id?: string;
}

/** Lets the operator look up, export and erase a customer, and end its sessions (protocol §9.2). */
@ManagementController('admin/customers')
@UseGuards(OperatorGuard)
@RequiredRole('support')
export class CustomerController {
  constructor(
    private readonly records: CustomerRecords,
    private readonly sessions: EndSessionsService,
    private readonly erasure: CustomerErasure,
    private readonly users: OrganizationUsers,
  ) {}

  @Get()
  @ApiRoute({
    summary: 'Get the customer with an external id, or list customers, at most 200 at a time',
    description:
      "Finds a customer by the organization's own id of the user. The response is the stored data of the customer. Without `external_id`, the response is a page of the customers of the organization. Follow `next_cursor` until it is absent.",
    query: CustomerQuery,
    response: CustomerRecord,
    otherResponse: CustomerPage,
  })
  async findOrList(@Req() request: Request): Promise<CustomerRecord | CustomerPage> {
    const { organization_id, external_id, ...page } = readStrictQuery(CustomerQuery, request.originalUrl);
    // an empty value must not list all customers
    const isEmpty = new URLSearchParams(queryOf(request.originalUrl)).get('external_id') === '';
    if (isEmpty) throw OAuthError.invalidRequest('external_id: must not be empty');
    if (external_id === undefined) return this.records.customerPage(organization_id, page);
    const entityId = await this.users.find(organization_id, external_id);
    const customer = entityId === undefined ? undefined : await this.records.find(entityId);
    if (!customer) throw OAuthError.notFound();
    return customer;
  }

  @Get(':entity_id')
  @ApiRoute({
    summary: 'Get the stored data of a customer',
    description: 'What the service stores about a customer, and which browsers and refresh tokens lead to it.',
    pathParameters: CUSTOMER_PATH,
    response: CustomerRecord,
  })
  async find(@Param('entity_id') entityId: string): Promise<CustomerRecord> {
    const customer = UUID.test(entityId) ? await this.records.find(entityId) : undefined;
    if (!customer) throw OAuthError.notFound();
    return customer;
  }

  @Get(':entity_id/export')
  @ApiRoute({
    summary: 'Get everything that is stored about a customer',
    description: 'The rows of all tables about a customer, for a request for access to personal data.',
    pathParameters: CUSTOMER_PATH,
    response: CustomerExport,
  })
  async export(@Param('entity_id') entityId: string): Promise<CustomerExport> {
    const exported = UUID.test(entityId) ? await this.records.export(entityId, operatorActor()) : undefined;
    if (!exported) throw OAuthError.notFound();
    return exported;
  }

  @Post(':entity_id/end_sessions')
  @ApiRoute({
    summary: 'End all sessions of a customer as the operator',
    description:
      'Ends all access tokens, refresh tokens and transfer tokens of a customer, and its links by transfer. With `browsers: true` no browser leads to the customer any more.',
    pathParameters: CUSTOMER_PATH,
  })
  @HttpCode(200)
  async endSessions(
    @Param('entity_id') entityId: string,
    @ValidatedBody(EndSessionsBody, { mayBeEmpty: true }) { browsers = false }: EndSessionsBody,
  ): Promise<object> {
    const organizationId = UUID.test(entityId) ? await this.records.organizationOf(entityId) : undefined;
    if (organizationId === undefined) throw OAuthError.notFound();
    const actor = operatorActor();
    if (!(await this.sessions.end({ entityId, organizationId, browsers, actor }))) throw OAuthError.notFound();
    return {};
  }

  @Delete(':entity_id')
  @ApiRoute({
    summary: 'Erase a customer, and end its tokens',
    description: 'Deletes what is stored about a customer. The response is the same if there is none.',
    pathParameters: CUSTOMER_PATH,
  })
  async erase(@Param('entity_id') entityId: string): Promise<object> {
    if (!UUID.test(entityId)) throw OAuthError.notFound();
    await this.erasure.erase(entityId, operatorActor());
    return {};
  }

  @Delete(':entity_id/browsers/:browser_id')
  @ApiRoute({
    summary: 'End the session of a browser of a customer, with its tokens',
    description:
      'Ends the access tokens of this browser for the customer, and all that was made with them. Its next request gets another customer.',
    pathParameters: {
      ...CUSTOMER_PATH,
      browser_id: { description: 'The id of the browser, from the data of the customer.', example: EXAMPLE.browserId },
    },
  })
  async endBrowser(@Param('entity_id') entityId: string, @Param('browser_id') browserId: string): Promise<object> {
    const areIds = UUID.test(entityId) && UUID.test(browserId);
    if (!areIds || !(await this.sessions.endBrowser(entityId, browserId))) throw OAuthError.notFound();
    return {};
  }

  @Delete(':entity_id/refresh-tokens/:session_id')
  @ApiRoute({
    summary: 'End a refresh token of a customer, with its tokens',
    description: 'Ends one refresh token of a customer, its access tokens, and all that was made with them.',
    pathParameters: {
      ...CUSTOMER_PATH,
      session_id: {
        description: 'The id of the session of the refresh token, from the data of the customer.',
        example: EXAMPLE.sessionId,
      },
    },
  })
  async endRefreshToken(@Param('entity_id') entityId: string, @Param('session_id') sessionId: string): Promise<object> {
    const areIds = UUID.test(entityId) && UUID.test(sessionId);
    if (!areIds || !(await this.sessions.endRefreshToken(entityId, sessionId))) throw OAuthError.notFound();
    return {};
  }
}
