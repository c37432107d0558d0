import { Get, Post, Req, type Type, UseGuards, UseInterceptors } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import type { Request } from 'express';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseQuery } from '../oauth/form.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { Optional, readParameters } from '../oauth/parameters.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { Entry } from '../registry/entries/entry.js';
import { auditRegistryChange } from '../registry/registry-audit.js';
import { RegistryEditor } from '../registry/registry-editor.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';
import { AdminTimeoutInterceptor } from './admin-timeout.interceptor.js';
import type { EntryResponses } from './entry-responses.js';

const MAX_PAGE_ENTRIES = 200;

class PageQuery {
  /** The page begins after this key. */
  @Optional()
  @IsString()
  after?: string;

  /** The maximum number of entries of the page. */
  @Optional()
  @Matches(/^([1-9]\d?|1\d\d|200)$/, { message: `must be 1 to ${MAX_PAGE_ENTRIES}` })
  limit?: string;
}

/** The routes of a resource's list: `GET` and `POST /admin/PATH` (protocol §9.1). */
export function entryListController(resource: RegistryResource, responses: EntryResponses): Type<object> {
  const { list, path, key, entry } = resource;

  @ManagementController(`admin/${path}`)
  @UseGuards(OperatorGuard)
  @UseInterceptors(AdminTimeoutInterceptor)
  class EntryListController {
    constructor(
      private readonly editor: RegistryEditor,
      private readonly audit: Audit,
    ) {}

    /** At most `limit` entries after the key `after`; `next` is the value of `after` for the next page. */
    @Get()
    @ApiRoute({
      summary: `List ${list}, at most ${MAX_PAGE_ENTRIES} at a time`,
      query: PageQuery,
      response: responses.page,
      errorStatuses: [400],
    })
    async list(@Req() request: Request): Promise<object> {
      const { after = '', limit } = readParameters(PageQuery, parseQuery(request.originalUrl));
      const count = Number(limit ?? MAX_PAGE_ENTRIES);
      const entries = await this.editor.list(resource, after, count);
      const next = entries.length < count ? undefined : String(entries.at(-1)?.[key.field]);
      return { [list]: entries, ...(next && { next }) };
    }

    @Post()
    @ApiRoute({ summary: `Create one of the ${list}`, body: entry, response: responses.entry, errorStatuses: [409] })
    async create(@Req() request: Request): Promise<Entry> {
      const created = await this.editor.create(resource, parseJsonObject(await readBody(request)));
      auditRegistryChange(this.audit, { actor: 'operator', resource, key: created, change: 'created' });
      return this.editor.read(resource, created);
    }
  }
  return EntryListController;
}
