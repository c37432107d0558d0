import { Exclude } from 'class-transformer';
import { IsBoolean, IsString } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { Each, IsUuid } from '../registry/file/entry-rules.js';
import { OrganizationEntry } from '../registry/file/organization-entry.js';
import { AgentEntry, ClientEntry, ResourceServerEntry } from '../registry/file/registry-document.js';

// Entries as the admin API shows them: never a secret, and whether the registry file lists and so owns them.

export class ShownOrganization extends OrganizationEntry {
  @IsBoolean()
  owned_by_file: boolean;
}

export class ShownClient extends ClientEntry {
  @Exclude()
  override client_secret: never;

  @IsBoolean()
  owned_by_file: boolean;
}

export class ShownAgent extends AgentEntry {
  @IsUuid()
  id: string;

  @Exclude()
  override password: never;

  @IsBoolean()
  owned_by_file: boolean;
}

export class ShownResourceServer extends ResourceServerEntry {
  @Exclude()
  override secret: never;

  @IsBoolean()
  owned_by_file: boolean;
}

/** A part of a list, with the key to go on with. */
class Page {
  @Optional()
  @IsString()
  next?: string;
}

export class OrganizationPage extends Page {
  @Each(() => ShownOrganization)
  organizations: ShownOrganization[];
}

export class ClientPage extends Page {
  @Each(() => ShownClient)
  clients: ShownClient[];
}

export class AgentPage extends Page {
  @Each(() => ShownAgent)
  agents: ShownAgent[];
}

export class ResourceServerPage extends Page {
  @Each(() => ShownResourceServer)
  resource_servers: ShownResourceServer[];
}
