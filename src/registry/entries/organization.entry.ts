import { IsBoolean, IsInt, IsObject, IsOptional, Max, Min } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { IsUuid } from '../../platform/validation/text-rules.js';
import { Nested } from '../../platform/validation/validation.js';
import { type AdmittedPublicClients, type GrantSettings, MAX_IDLE_DAYS, Organization } from '../organization.entity.js';
import type { EntryKind } from './entry-kind.js';
import { IsName, IsPublicClients } from './entry-rules.js';

class License {
  @IsOptional()
  @IsBoolean()
  @ApiProperty('Whether all groups of the organization share one customer per browser. `true` if omitted.', false)
  chat_between_groups = true;
}

export class OrganizationEntry {
  @IsUuid()
  @ApiProperty('The id of the organization: a UUID in lower case that you choose.', EXAMPLE.organizationId)
  id!: string;

  @IsName()
  @ApiProperty('The name of the organization. The authorization page shows it.', 'Acme')
  name!: string;

  @IsOptional()
  @IsObject()
  @Nested(() => License)
  @ApiProperty('What the organization may use.')
  license = new License();

  @IsOptional()
  @IsPublicClients()
  @ApiProperty(
    'The public clients that may get tokens for customers of the organization: `all`, or a list of client ids. A new organization without the field admits none.',
    'all',
  )
  public_clients?: AdmittedPublicClients;

  @IsOptional()
  @IsInt()
  @Min(1)
  @Max(MAX_IDLE_DAYS)
  @ApiProperty(
    `For how many days a browser leads to a customer that it does not use: 1 to ${MAX_IDLE_DAYS}. ${MAX_IDLE_DAYS} if omitted.`,
    365,
  )
  idle_days?: number;

  @IsOptional()
  @IsObject()
  @ApiProperty('Settings of grants for this organization, by the names of the grants.', {
    'urn:ietf:params:oauth:grant-type:jwt-bearer': {
      issuer: 'https://login.acme.example',
      jwks_uri: 'https://login.acme.example/jwks.json',
    },
  })
  grants: GrantSettings = {};

  @IsOptional()
  @IsBoolean()
  @ApiProperty(
    'Whether requests for the organization are refused and its tokens end. `false` for a new entry. If omitted, it stays as it is.',
    false,
  )
  suspended?: boolean;
}

export const ORGANIZATIONS: EntryKind<OrganizationEntry, Organization> = {
  name: 'organization',
  entry: OrganizationEntry,
  entity: Organization,
  key: { field: 'id', column: 'id' },

  toColumns(entry: OrganizationEntry, stored?: Organization): Partial<Organization> {
    return {
      id: entry.id,
      name: entry.name,
      chatBetweenGroups: entry.license.chat_between_groups,
      publicClients: entry.public_clients ?? stored?.publicClients ?? [],
      idleDays: entry.idle_days ?? null,
      grants: entry.grants,
      suspended: entry.suspended ?? stored?.suspended ?? false,
    };
  },

  toEntry(row: Organization): object {
    return {
      id: row.id,
      name: row.name,
      license: { chat_between_groups: row.chatBetweenGroups },
      public_clients: row.publicClients ?? [],
      idle_days: row.idleDays ?? undefined,
      grants: row.grants,
      suspended: row.suspended,
    };
  },
};
