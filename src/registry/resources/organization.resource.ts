import { Type } from 'class-transformer';
import { IsBoolean, IsInt, IsObject, IsOptional, Max, Min, ValidateNested } from 'class-validator';
import { type AdmittedPublicClients, type GrantSettings, Organization } from '../organization.entity.js';
import { IsName, IsPublicClients, IsUuid } from './entry-rules.js';
import { defineResource } from './registry-resource.js';

class License {
  @IsOptional()
  @IsBoolean()
  chat_between_groups = true;
}

class OrganizationEntry {
  @IsUuid()
  id: string;

  @IsName()
  name: string;

  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => License)
  license = new License();

  /** If omitted, an existing organization keeps its value, and a new one admits no public client. */
  @IsOptional()
  @IsPublicClients()
  public_clients?: AdmittedPublicClients;

  /** If omitted: 731, which is longer than the cookies live. */
  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(731)
  idle_days?: number;

  @IsOptional()
  @IsObject()
  grants: GrantSettings = {};
}

export const organizationResource = defineResource<OrganizationEntry, Organization>({
  noun: 'organization',
  auditKind: 'organization',
  list: 'organizations',
  path: 'organizations',
  entry: OrganizationEntry,
  entity: Organization,
  key: { field: 'id', column: 'id' },
  grantSettings: 'grants',
  retainedFields: { public_clients: { publicClients: [] } },
  warning: {
    appliesTo: ({ public_clients }, stored) => public_clients === undefined && stored?.publicClients === 'all',
    text: 'without public_clients, which admits all public clients; set it to all or to a list of client ids',
  },
  toRow: ({ id, name, license, grants, public_clients: publicClients, idle_days }) => ({
    id,
    name,
    chatBetweenGroups: license.chat_between_groups,
    grants,
    publicClients,
    idleDays: idle_days ?? null,
  }),
  toEntry: ({ id, name, chatBetweenGroups, grants, publicClients, idleDays }) => ({
    id,
    name,
    license: { chat_between_groups: chatBetweenGroups },
    public_clients: publicClients ?? [],
    ...(idleDays !== null && { idle_days: idleDays }),
    grants,
  }),
});
