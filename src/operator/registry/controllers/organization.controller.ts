import { Delete, Get, Headers, Param, Res } from '@nestjs/common';
import { IsISO8601 } from 'class-validator';
import type { Response } from 'express';
import { OrganizationCustomers } from '../../../customer/organization-customers.js';
import { RequiredRole } from '../../../http/callers/operator.guard.js';
import { operatorActor } from '../../../http/callers/operator-credentials.js';
import { Page, PageQuery } from '../../../oauth/pages.js';
import { EXAMPLE } from '../../../platform/http/api-examples.js';
import { ApiInheritedRoutes, ApiProperty, ApiRoute, apiPropertyOf } from '../../../platform/http/api-route.js';
import { ApiInteger, Nested, Optional } from '../../../platform/validation/validation.js';
import { ORGANIZATIONS, OrganizationEntry } from '../../../registry/entries/organization.entry.js';
import type { Organization } from '../../../registry/organization.entity.js';
import { OffboardingRequests } from '../offboarding/offboarding-requests.js';
import { RegistryEditor } from '../registry-editor.js';
import { RegistryLists } from '../registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController } from './entry.controller.js';
import { ApiEntries, ApiFromFile, entryRoutes } from './entry-routes.js';

class OffboardingState {
  @IsISO8601()
  @ApiProperty('When the erasure begins, or began. Until then it can be cancelled.', EXAMPLE.time)
  begins_at!: string;

  @Optional()
  @ApiInteger(
    'The number of customers that are not erased yet, at most 100,000. Absent in lists, and if the database does not count them in time.',
    1_500,
  )
  customers_left?: number;
}

class OrganizationResponse extends OrganizationEntry {
  @ApiFromFile()
  from_file!: boolean;

  @Optional()
  @Nested(() => OffboardingState)
  @ApiProperty('Present if the organization is being off-boarded.')
  offboarding?: OffboardingState;
}

class OrganizationPage extends Page {
  @ApiEntries(() => OrganizationResponse)
  organizations!: OrganizationResponse[];
}

const TEXTS = entryRoutes(ORGANIZATIONS, {
  query: PageQuery,
  page: OrganizationPage,
  response: OrganizationResponse,
});

@AdminController('organizations')
@ApiInheritedRoutes({
  ...TEXTS,
  change: { ...TEXTS.change, errors: [...TEXTS.change.errors, '409 conflict'] },
  delete: {
    ...TEXTS.delete,
    summary: 'Off-board one of the organizations',
    description:
      'Erases a suspended organization with its clients, agents and customers, after a delay. Until then it can be cancelled. A repeated request changes nothing.',
    response: OrganizationResponse,
    responseHeaders: TEXTS.read.responseHeaders,
    errors: [...TEXTS.delete.errors, '409 conflict'],
  },
})
export class OrganizationController extends EntryController<Organization> {
  constructor(
    lists: RegistryLists,
    editor: RegistryEditor,
    private readonly offboarding: OffboardingRequests,
    private readonly customers: OrganizationCustomers,
  ) {
    super(ORGANIZATIONS, PageQuery, lists, editor);
  }

  @Get(':key')
  @RequiredRole('read')
  override async read(@Res({ passthrough: true }) http: Response, @Param('key') key: string): Promise<object> {
    const response = (await super.read(http, key)) as OrganizationResponse;
    const { offboarding } = response;
    const count = offboarding && (await this.customers.count(key).catch(() => undefined));
    if (offboarding && count !== undefined) offboarding.customers_left = count;
    return response;
  }

  @Delete(':key')
  @RequiredRole('all')
  override async delete(
    @Res({ passthrough: true }) http: Response,
    @Param('key') key: string,
    @Headers('if-match') ifMatch?: string,
  ): Promise<object> {
    await this.offboarding.request(key, { actor: operatorActor(), ifMatch });
    return this.read(http, key);
  }

  @Delete(':id/offboarding')
  @RequiredRole('all')
  @ApiRoute({
    summary: 'Cancel the off-boarding of an organization',
    description:
      'Nothing is erased then, and the organization stays suspended. The response is the same if it was not being off-boarded.',
    pathParameters: { id: apiPropertyOf(OrganizationEntry, 'id') },
    errors: ['409 conflict'],
  })
  async cancelOffboarding(@Param('id') id: string): Promise<object> {
    await this.offboarding.cancel(id, operatorActor());
    return {};
  }

  protected toResponse(row: Organization): object {
    const { fromFile, offboardingAt } = row;
    return {
      ...ORGANIZATIONS.toEntry(row),
      from_file: fromFile,
      ...(offboardingAt && { offboarding: { begins_at: offboardingAt.toISOString() } }),
    };
  }
}
