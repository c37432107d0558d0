import { applyDecorators, Delete, Get, Headers, Param, Patch, Post, Put, Req, Res, type Type } from '@nestjs/common';
import { Exclude } from 'class-transformer';
import { IsArray, IsBoolean, MaxLength } from 'class-validator';
import type { Request, Response } from 'express';
import { readStrictQuery } from '../oauth/form.js';
import { IsUuid, Optional, OptionalText } from '../oauth/parameters.js';
import { readBody } from '../oauth/request-body.js';
import { RequiredRole } from '../operator/operator.guard.js';
import { operatorActor } from '../operator/operator-credentials.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty, ApiRoute, apiPropertyOf } from '../platform/http/api-route.js';
import { Nested } from '../platform/validation.js';
import type { Entry } from '../registry/entry.js';
import { MAX_PAGE_ENTRIES, PAGE_ERRORS } from '../registry/page-query.js';
import { EDITOR_ERRORS, RegistryEditor } from '../registry/registry-editor.js';
import { filtersOf, ListQuery, RegistryLists } from '../registry/registry-lists.js';
import { organizationResource } from '../registry/resources/organization.resource.js';
import type { RegistryResource } from '../registry/resources/registry-resource.js';
import { AdminController } from './admin-controller.js';

const MAX_NAME_CHARACTERS = 200;

const IF_MATCH = 'With `If-Match` and an `ETag`, an entry that has changed since gets 412.';

/** The routes of a resource (protocol §9.1). */
export function entryController(resource: RegistryResource): Type<object> {
  const { noun, list, path, entry, key, tokensEndWith } = resource;
  const isReferenced = resource === organizationResource;
  const query = listQueryOf(resource);
  const response = entryResponseOf(resource);
  const changeErrors = () => [
    EDITOR_ERRORS.fixedKey(resource),
    EDITOR_ERRORS.changedSince(),
    ...(key.isGenerated ? [EDITOR_ERRORS.belongsToAnother(resource)] : []),
  ];
  const pathParameters = { key: apiPropertyOf(response, key.field) };

  @AdminController(path)
  class EntryController {
    constructor(
      private readonly lists: RegistryLists,
      private readonly editor: RegistryEditor,
    ) {}

    @Get()
    @RequiredRole('read')
    @ApiRoute({
      summary: `List ${list}, at most ${MAX_PAGE_ENTRIES} at a time`,
      description: `Returns a page of the ${list}. Follow \`next_cursor\` until it is absent.`,
      query,
      response: pageOf(resource, response),
      errors: PAGE_ERRORS,
    })
    list(@Req() request: Request): Promise<object> {
      return this.lists.page(resource, readStrictQuery(query, request.originalUrl));
    }

    @Post()
    @ApiRoute({
      summary: `Create one of the ${list}`,
      description: `Adds an entry. The process that responds uses it at once, the others within seconds.`,
      body: entry,
      bodyExamples: { '': resource.exampleFields ?? [] },
      response,
      errors: () => [EDITOR_ERRORS.exists(resource)],
    })
    async create(@Req() request: Request, @Res({ passthrough: true }) http: Response): Promise<Entry> {
      const created = await this.editor.create(resource, await readBody(request), operatorActor());
      return this.respond(http, created);
    }

    @Get(':key')
    @RequiredRole('read')
    @ApiRoute({
      summary: `Get one of the ${list}`,
      description: `Returns the ${noun}, without its secret. The header \`ETag\` names its present state.`,
      pathParameters,
      response,
    })
    read(@Param('key') key: string, @Res({ passthrough: true }) http: Response): Promise<Entry> {
      return this.respond(http, key);
    }

    @Put(':key')
    @ApiRoute({
      summary: `Create or replace one of the ${list}`,
      description: `Gives the entry the fields of the body, and creates it if there is none. ${IF_MATCH}`,
      pathParameters,
      body: entry,
      bodyExamples: { '': resource.exampleFields ?? [] },
      response,
      mayCreate: true,
      errors: () => [...changeErrors(), EDITOR_ERRORS.exists(resource)],
    })
    async put(
      @Req() request: Request,
      @Res({ passthrough: true }) http: Response,
      @Param('key') key: string,
      @Headers('if-match') ifMatch?: string,
    ): Promise<Entry> {
      const body = await readBody(request);
      if (await this.editor.put(resource, key, body, { actor: operatorActor(), ifMatch })) http.status(201);
      return this.respond(http, key);
    }

    @Patch(':key')
    @ApiRoute({
      summary: `Change one of the ${list} by a merge patch (RFC 7396)`,
      description: `Changes the fields that the body has. \`null\` removes a field. Other fields keep their value. ${IF_MATCH}`,
      pathParameters,
      body: entry,
      bodyExamples: { '': [resource.exampleChange ?? ''] },
      response,
      errors: changeErrors,
    })
    async change(
      @Req() request: Request,
      @Res({ passthrough: true }) http: Response,
      @Param('key') key: string,
      @Headers('if-match') ifMatch?: string,
    ): Promise<Entry> {
      await this.editor.change(resource, key, await readBody(request), { actor: operatorActor(), ifMatch });
      return this.respond(http, key);
    }

    @Delete(':key')
    @RequiredRole(isReferenced ? 'all' : 'registry')
    @ApiRoute({
      summary: `Delete one of the ${list}`,
      description: `Deletes the ${noun}${tokensEndWith ? ' and ends its tokens' : ''}.`,
      pathParameters,
      errors: () => [EDITOR_ERRORS.changedSince(), ...(isReferenced ? [EDITOR_ERRORS.stillReferenced(resource)] : [])],
    })
    async delete(@Param('key') key: string, @Headers('if-match') ifMatch?: string): Promise<object> {
      await this.editor.delete(resource, key, { actor: operatorActor(), ifMatch });
      return {};
    }

    private async respond(http: Response, key: string): Promise<Entry> {
      const { entry: stored, etag } = await this.editor.read(resource, key);
      http.setHeader('ETag', etag);
      return stored;
    }
  }
  return EntryController;
}

class Page {
  @OptionalText('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

export function listQueryOf(resource: RegistryResource): Type<ListQuery> {
  const filters = filtersOf(resource);
  class ResourceListQuery extends ListQuery {}
  const describe = describerOf(ResourceListQuery);
  if (filters.includes('organization_id')) describe('organization_id', Optional(), IsUuid());
  if (filters.includes('name')) describe('name', Optional(), MaxLength(MAX_NAME_CHARACTERS));
  return ResourceListQuery;
}

export function entryResponseOf({ noun, key, secret, responseFields, entry }: RegistryResource): Type<object> {
  class EntryResponse extends (entry as Type<object>) {}
  const describe = describerOf(EntryResponse);
  if (key.isGenerated)
    describe(key.field, IsUuid(), ApiProperty(`The id of the ${noun}. The service chose it.`, EXAMPLE.agentId));
  if (secret) describe(secret.field, Exclude());
  for (const [field, rules] of Object.entries(responseFields?.rules ?? {})) describe(field, rules);
  const fromFile = 'Whether a registry file brought the entry.';
  describe('from_file', IsBoolean(), ApiProperty(fromFile, false));
  return EntryResponse;
}

export function pageOf({ list }: RegistryResource, entryResponse: Type<object>): Type<object> {
  class EntryPage extends Page {}
  const entries = Nested(() => entryResponse, { each: true });
  describerOf(EntryPage)(list, IsArray(), entries, ApiProperty('The entries of the page, in the order of their keys.'));
  return EntryPage;
}

function describerOf(type: Type<object>) {
  return (field: string, ...rules: PropertyDecorator[]) => applyDecorators(...rules)(type.prototype, field);
}
