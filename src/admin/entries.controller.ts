import { Delete, Get, Param, Patch, Post, Req, type Type, UseGuards } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import type { Request } from 'express';
import { Denylist } from '../access-token/denylist.js';
import { Audit } from '../audit/audit.js';
import { readBody } from '../oauth/body-reader.js';
import { parseQuery } from '../oauth/form.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { Optional, readParameters } from '../oauth/parameters.js';
import { OperatorGuard } from '../operator/operator.guard.js';
import { Describes } from '../platform/http/describes.js';
import { ManagementController } from '../platform/http/surfaces.js';
import type { Entry, EntryList } from '../registry/entry-kinds.js';
import { OrganizationEntry } from '../registry/file/organization-entry.js';
import { AgentEntry, ClientEntry, ResourceServerEntry } from '../registry/file/registry-document.js';
import { RegistryEditor } from '../registry/registry-editor.js';
import {
  AgentPage,
  ClientPage,
  OrganizationPage,
  ResourceServerPage,
  ShownAgent,
  ShownClient,
  ShownOrganization,
  ShownResourceServer,
} from './entry-answers.js';

/** A list of the registry, what an entry of it is called in the audit, and the classes of what is sent and shown. */
interface ListAddress {
  list: EntryList;
  kind: 'organization' | 'client' | 'agent' | 'resource_server';
  entry: Type<object>;
  shown: Type<object>;
  page: Type<object>;
}

const LISTS: Record<string, ListAddress> = {
  organizations: {
    list: 'organizations',
    kind: 'organization',
    entry: OrganizationEntry,
    shown: ShownOrganization,
    page: OrganizationPage,
  },
  clients: { list: 'clients', kind: 'client', entry: ClientEntry, shown: ShownClient, page: ClientPage },
  agents: { list: 'agents', kind: 'agent', entry: AgentEntry, shown: ShownAgent, page: AgentPage },
  'resource-servers': {
    list: 'resource_servers',
    kind: 'resource_server',
    entry: ResourceServerEntry,
    shown: ShownResourceServer,
    page: ResourceServerPage,
  },
};
const LONGEST_LIST = 200;

class PageQuery {
  /** The key after which to go on. */
  @Optional()
  @IsString()
  after?: string;

  /** The most entries to answer. */
  @Optional()
  @Matches(/^([1-9]\d?|1\d\d|200)$/, { message: `must be 1 to ${LONGEST_LIST}` })
  limit?: string;
}

/** Organizations, clients, agents and resource servers, as the registry file writes them (contract, sections 2 and 9). */
@ManagementController(Object.keys(LISTS).map((name) => `admin/${name}`))
@UseGuards(OperatorGuard)
export class EntriesController {
  constructor(
    private readonly editor: RegistryEditor,
    private readonly denylist: Denylist,
    private readonly audit: Audit,
  ) {}

  /** At most `limit` entries after the key `after`; `next` is the key to go on with. */
  @Get()
  @Describes((address) => {
    const { list, page } = listAt(address);
    return {
      summary: `List ${list}, at most ${LONGEST_LIST} at a time`,
      query: PageQuery,
      answer: page,
      refusals: [400],
    };
  })
  async list(@Req() request: Request): Promise<object> {
    const { after = '', limit } = readParameters(PageQuery, parseQuery(request.originalUrl));
    const count = Number(limit ?? LONGEST_LIST);
    const { list } = listOf(request);
    const entries = await this.editor.list(list, after, count);
    const next = entries.length < count ? undefined : keyOf(entries.at(-1) as Entry);
    return { [list]: entries, ...(next && { next }) };
  }

  @Get(':key')
  @Describes((address) => ({ summary: `Read one of the ${listAt(address).list}`, answer: listAt(address).shown }))
  read(@Req() request: Request, @Param('key') key: string): Promise<Entry> {
    return this.editor.read(listOf(request).list, key);
  }

  @Post()
  @Describes((address) => {
    const { list, entry, shown } = listAt(address);
    return { summary: `Add to the ${list}`, body: entry, answer: shown, refusals: [409] };
  })
  async create(@Req() request: Request): Promise<Entry> {
    const { list } = listOf(request);
    const key = await this.editor.create(list, parseJsonObject(await readBody(request)));
    this.tell(request, key, 'created', []);
    return this.editor.read(list, key);
  }

  @Patch(':key')
  @Describes((address) => {
    const { list, entry, shown } = listAt(address);
    return { summary: `Change one of the ${list} (RFC 7396)`, body: entry, answer: shown, refusals: [409] };
  })
  async change(@Req() request: Request, @Param('key') key: string): Promise<Entry> {
    const sent = parseJsonObject(await readBody(request));
    const { list } = listOf(request);
    await this.editor.change(list, key, sent);
    this.tell(request, key, 'changed', Object.keys(sent));
    return this.editor.read(list, key);
  }

  @Delete(':key')
  @Describes((address) => ({ summary: `Delete one of the ${listAt(address).list}`, refusals: [409] }))
  async delete(@Req() request: Request, @Param('key') key: string): Promise<object> {
    const { list } = listOf(request);
    await this.editor.delete(list, key, async () => {
      if (list === 'clients') await this.denylist.revokeClient(key);
    });
    this.tell(request, key, 'deleted', []);
    return {};
  }

  private tell(request: Request, id: string, change: string, fields: string[]): void {
    const subject = { kind: listOf(request).kind, id };
    const details = { change, fields };
    this.audit.record({ event: 'registry.changed', outcome: 'success', actor: { kind: 'operator' }, subject, details });
  }
}

function listOf({ path }: Request): ListAddress {
  return listAt(path.replace('/management', ''));
}

/** The list at an address or below it: `/admin/clients/…`. */
function listAt(address: string): ListAddress {
  const [, , name = ''] = address.split('/');
  return LISTS[name] as ListAddress;
}

function keyOf({ id, client_id }: Entry): string {
  return String(client_id ?? id);
}
