import { Get, Post, Req, type Type, UseGuards, UseInterceptors } from '@nestjs/common';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { Entry } from '../registry/entries/entry.js';
import { cursorAfter } from '../registry/list-cursor.js';
import { MAX_PAGE_ENTRIES } from '../registry/page-query.js';
import { auditRegistryChange } from '../registry/registry-audit.js';
import { RegistryEditor } from '../registry/registry-editor.js';
import { RegistryLists } from '../registry/registry-lists.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';
import { AdminTimeoutInterceptor } from './admin-timeout.interceptor.js';
import type { EntryResponses } from './entry-responses.js';
import { listQueryOf, readListQuery } from './list-query.js';

/** The routes of a resource's list: `GET` and `POST /admin/PATH` (protocol §9.1). */
export function entryListController(resource: RegistryResource, responses: EntryResponses): Type<object> {
  const { list, path, entry, key } = resource;
  const query = listQueryOf(resource);

  @ManagementController(`admin/${path}`)
  @UseGuards(OperatorGuard)
  @UseInterceptors(AdminTimeoutInterceptor)
  class EntryListController {
    constructor(
      private readonly lists: RegistryLists,
      private readonly editor: RegistryEditor,
      private readonly audit: Audit,
    ) {}

    @Get()
    @ApiRoute({
      summary: `List ${list}, at most ${MAX_PAGE_ENTRIES} at a time`,
      description: `Returns a page of the ${list}. Follow \`next_cursor\` until it is absent.`,
      query,
      response: responses.page,
      errors: () => [
        OAuthError.invalidRequest(`limit: must be 1 to ${MAX_PAGE_ENTRIES}`),
        OAuthError.invalidRequest('cursor: not a next_cursor of this list'),
      ],
    })
    async list(@Req() request: Request): Promise<object> {
      const range = readListQuery(query, list, request.originalUrl);
      const { entries, lastKey } = await this.lists.page(resource, range);
      if (lastKey === undefined) return { [list]: entries };
      return { [list]: entries, next_cursor: cursorAfter(list, lastKey) };
    }

    @Post()
    @ApiRoute({
      summary: `Create one of the ${list}`,
      description: `Adds an entry. The process that responds uses it at once, the others within seconds.`,
      body: entry,
      bodyExamples: { '': resource.exampleFields ?? [] },
      response: responses.entry,
      errors: () => [OAuthError.conflict(`${key.field}: already exists`)],
    })
    async create(@Req() request: Request): Promise<Entry> {
      const created = await this.editor.create(resource, parseJsonObject(await readBody(request)));
      auditRegistryChange(this.audit, { actor: operatorActor(), resource, key: created, change: 'created' });
      return this.editor.read(resource, created);
    }
  }
  return EntryListController;
}
