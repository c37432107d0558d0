import { Delete, Get, Headers, Param, Patch, Post, Put, Req, Res, type Type } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { ObjectLiteral } from 'typeorm';
import { RequiredRole } from '../../../http/callers/operator.guard.js';
import { operatorActor } from '../../../http/callers/operator-credentials.js';
import { readStrictQuery } from '../../../oauth/form.js';
import { readBody } from '../../../oauth/request-body.js';
import { type EntryKind, listOf } from '../../../registry/entries/entry-kind.js';
import type { RegistryEditor } from '../registry-editor.js';
import type { OrganizationListQuery, RegistryLists } from '../registry-lists.js';

/** The routes that the controllers of the four lists inherit (protocol §9.1). */
export abstract class EntryController<Row extends ObjectLiteral> {
  constructor(
    private readonly kind: EntryKind<object, Row>,
    private readonly query: Type<OrganizationListQuery>,
    private readonly lists: RegistryLists,
    protected readonly editor: RegistryEditor,
  ) {}

  protected abstract toResponse(row: Row): object;

  @Get()
  @RequiredRole('read')
  async list(@Req() request: Request): Promise<object> {
    const { rows, next_cursor } = await this.lists.page(this.kind, readStrictQuery(this.query, request.originalUrl));
    return { [listOf(this.kind)]: rows.map((row) => this.toResponse(row)), next_cursor };
  }

  @Post()
  async create(@Req() request: Request, @Res({ passthrough: true }) http: Response): Promise<object> {
    const key = await this.editor.create(this.kind, await readBody(request), operatorActor());
    return this.read(http, key);
  }

  @Get(':key')
  @RequiredRole('read')
  async read(@Res({ passthrough: true }) http: Response, @Param('key') key: string): Promise<object> {
    const { row, etag } = await this.editor.read(this.kind, key);
    http.setHeader('ETag', etag);
    return this.toResponse(row);
  }

  @Put(':key')
  async put(
    @Req() request: Request,
    @Res({ passthrough: true }) http: Response,
    @Param('key') key: string,
    @Headers('if-match') ifMatch?: string,
  ): Promise<object> {
    const body = await readBody(request);
    if (await this.editor.put(this.kind, key, body, { actor: operatorActor(), ifMatch })) http.status(201);
    return this.read(http, key);
  }

  @Patch(':key')
  async change(
    @Req() request: Request,
    @Res({ passthrough: true }) http: Response,
    @Param('key') key: string,
    @Headers('if-match') ifMatch?: string,
  ): Promise<object> {
    await this.editor.change(this.kind, key, await readBody(request), { actor: operatorActor(), ifMatch });
    return this.read(http, key);
  }

  @Delete(':key')
  async delete(
    @Res({ passthrough: true }) _http: Response,
    @Param('key') key: string,
    @Headers('if-match') ifMatch?: string,
  ): Promise<object> {
    await this.editor.delete(this.kind, key, { actor: operatorActor(), ifMatch });
    return {};
  }
}
