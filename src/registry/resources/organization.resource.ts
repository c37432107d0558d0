import { IsBoolean, IsInt, IsObject, IsOptional, Max, Min } from 'class-validator';
import { IsUuid } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { Nested } from '../../platform/validation.js';
import { type AdmittedPublicClients, type GrantSettings, Organization } from '../organization.entity.js';
import { IsName, IsPublicClients } from './entry-rules.js';
import { defineResource } from './registry-resource.js';

class License {
  @IsOptional()
  @IsBoolean()
  @ApiProperty('Whether all groups of the organization share one customer per browser. `true` if omitted.', false)
  chat_between_groups = true;
}

class OrganizationEntry {
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
  @Max(731)
  @ApiProperty('For how many days a browser leads to a customer that it does not use: 1 to 731. 731 if omitted.', 365)
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

export const organizationResource = defineResource<OrganizationEntry, Organization>({
  noun: 'organization',
  entry: OrganizationEntry,
  entity: Organization,
  key: { field: 'id', column: 'id' },
  grantSettings: 'grants',
  exampleFields: ['license', 'public_clients'],
  retainsKey: 'its id cannot be used again',
  exampleChange: 'name',
  retainedFields: { public_clients: { publicClients: [] }, suspended: { suspended: false } },
  warning: {
    appliesTo: ({ public_clients }, stored) => public_clients === undefined && stored?.publicClients === 'all',
    text: 'without public_clients, which admits all public clients; set it to all or to a list of client ids',
  },
  toRow: ({ id, name, license, grants, public_clients: publicClients, idle_days, suspended }) => ({
    id,
    name,
    chatBetweenGroups: license.chat_between_groups,
    grants,
    publicClients,
    idleDays: idle_days ?? null,
    suspended,
  }),
  toEntry: ({ id, name, chatBetweenGroups, grants, publicClients, idleDays, suspended }) => ({
    id,
    name,
    license: { chat_between_groups: chatBetweenGroups },
    public_clients: publicClients ?? [],
    ...(idleDays !== null && { idle_days: idleDays }),
    grants,
    suspended,
  }),
});
