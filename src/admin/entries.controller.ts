import { Delete, Get, Param, Patch, Post, Query, Req, UseGuards } from '@nestjs/common';
import type { Request } from 'express';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { AdminGuard } from '../oauth/admin.guard.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Configuration } from '../platform/configuration/configuration.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { EntryList } from '../registry/entry-kinds.js';
import { type Entry, RegistryEditor } from '../registry/registry-editor.js';

/** Addresses and the lists of the registry behind them; what an entry of each is called in the audit. */
const LISTS: Record<string, { list: EntryList; kind: 'organization' | 'client' | 'agent' | 'resource_server' }> = {
  organizations: { list: 'organizations', kind: 'organization' },
  clients: { list: 'clients', kind: 'client' },
  agents: { list: 'agents', kind: 'agent' },
  'resource-servers': { list: 'resource_servers', kind: 'resource_server' },
};
const LONGEST_LIST = 200;

/** Organizations, clients, agents and resource servers, as the registry file writes them (contract, sections 2 and 9). */
@ManagementController(Object.keys(LISTS).map((name) => `admin/${name}`))
@UseGuards(AdminGuard)
export class EntriesController {
  constructor(
    private readonly editor: RegistryEditor,
    private readonly denylist: Denylist,
    private readonly audit: Audit,
    private readonly configuration: Configuration,
  ) {}

  /** At most `limit` entries after the key `after`; `next` is the key to go on with. */
  @Get()
  async list(@Req() request: Request, @Query('after') after: unknown, @Query('limit') limit: unknown): Promise<object> {
    const count = limit === undefined ? LONGEST_LIST : Number(limit);
    if (!Number.isInteger(count) || count < 1 || count > LONGEST_LIST) {
      throw OAuthError.invalidRequest(`limit: must be 1 to ${LONGEST_LIST}`);
    }
    const { list } = listOf(request);
    const entries = await this.editor.list(list, typeof after === 'string' ? after : '', count);
    const next = entries.length < count ? undefined : keyOf(entries.at(-1) as Entry);
    return { [list]: entries, ...(next && { next }) };
  }

  @Get(':key')
  read(@Req() request: Request, @Param('key') key: string): Promise<Entry> {
    return this.editor.read(listOf(request).list, key);
  }

  @Post()
  async create(@Req() request: Request): Promise<Entry> {
    const entry = await this.editor.create(listOf(request).list, parseJsonObject(await readBody(request)));
    this.tell(request, keyOf(entry), 'created', []);
    return entry;
  }

  @Patch(':key')
  async change(@Req() request: Request, @Param('key') key: string): Promise<Entry> {
    const sent = parseJsonObject(await readBody(request));
    const entry = await this.editor.change(listOf(request).list, key, sent);
    this.tell(request, key, 'changed', Object.keys(sent));
    return entry;
  }

  @Delete(':key')
  async delete(@Req() request: Request, @Param('key') key: string): Promise<object> {
    const { list } = listOf(request);
    await this.editor.delete(list, key);
    if (list === 'clients') await this.denylist.revokeAllOf('client', key, this.configuration.longestTokenLife);
    this.tell(request, key, 'deleted', []);
    return {};
  }

  private tell(request: Request, id: string, change: string, fields: string[]): void {
    const subject = { kind: listOf(request).kind, id };
    const details = { change, fields };
    this.audit.record({ event: 'registry.changed', outcome: 'success', actor: { kind: 'operator' }, subject, details });
  }
}

function listOf({ path }: Request): (typeof LISTS)[string] {
  const [, , , name = ''] = path.split('/'); // after the surface and `admin`
  return LISTS[name] as (typeof LISTS)[string];
}

function keyOf({ id, client_id }: Entry): string {
  return String(client_id ?? id);
}
