import { Delete, Headers, Param } from '@nestjs/common';
import { RequiredRole } from '../../../http/callers/operator.guard.js';
import { Page } from '../../../oauth/pages.js';
import { ApiInheritedRoutes } from '../../../platform/http/api-route.js';
import { ORGANIZATIONS, OrganizationEntry } from '../../../registry/entries/organization.entry.js';
import type { Organization } from '../../../registry/organization.entity.js';
import { EDITOR_ERRORS, RegistryEditor } from '../registry-editor.js';
import { NamedListQuery, RegistryLists } from '../registry-lists.js';
import { AdminController } from './admin-controller.js';
import { EntryController } from './entry.controller.js';
import { ApiEntries, ApiFromFile } from './entry-fields.js';
import { entryRoutes } from './entry-routes.js';

class OrganizationResponse extends OrganizationEntry {
  @ApiFromFile()
  from_file!: boolean;
}

class OrganizationPage extends Page {
  @ApiEntries(() => OrganizationResponse)
  organizations!: OrganizationResponse[];
}

@AdminController('organizations')
@ApiInheritedRoutes(
  entryRoutes(ORGANIZATIONS, {
    query: NamedListQuery,
    page: OrganizationPage,
    response: OrganizationResponse,
    exampleFields: ['license', 'public_clients'],
    exampleChange: 'name',
    deletionErrors: () => [EDITOR_ERRORS.organizationInUse()],
  }),
)
export class OrganizationController extends EntryController<Organization> {
  constructor(lists: RegistryLists, editor: RegistryEditor) {
    super(ORGANIZATIONS, NamedListQuery, lists, editor);
  }

  @Delete(':key')
  @RequiredRole('all')
  override delete(@Param('key') key: string, @Headers('if-match') ifMatch?: string): Promise<object> {
    return super.delete(key, ifMatch);
  }

  protected toResponse(row: Organization): object {
    return { ...ORGANIZATIONS.toEntry(row), from_file: row.fromFile };
  }
}
