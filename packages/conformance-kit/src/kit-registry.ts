import { randomSecret } from 'customer-authorization-service/grant';
import type { RegistryDocument } from './registry-file.js';

/** The organization of the requests, an unrelated organization, and an organization whose groups share one identity. */
export const OWN_ORGANIZATION = '1f0f7f6e-6c1c-4f43-9d0e-5d3d0f2b7a01';
export const FOREIGN_ORGANIZATION = '2a7be6c9-0b5e-4c39-8a55-9b8f1f6f5b02';
export const SHARED_ORGANIZATION = '3c1d9a4e-7d22-4e1b-b0a7-4f6f3f9d8c03';

export const SITE = 'kit-site';
export const ORIGIN = 'https://kit.example';
/** Another client of the same organization, with the same settings. */
export const OTHER_SITE = 'kit-other-site';
/** A client that may use no grant. */
export const UNLISTED_SITE = 'kit-unlisted-site';
/** A client without `grant_types`, which may use all grants except those with `optIn`. */
export const SILENT_SITE = 'kit-silent-site';
/** A client without settings under `grants`. */
export const BARE_SITE = 'kit-bare-site';
/** A public client that all organizations of the kit admit. */
export const PUBLIC_SITE = 'kit-public-site';
export const PUBLIC_ORIGIN = 'https://widget.example';
export const FOREIGN_SITE = 'kit-foreign-site';
export const FOREIGN_ORIGIN = 'https://foreign.example';
export const SHARED_SITE = 'kit-shared-site';

/** The email of the kit's agent of an organization. */
export const agentEmail = (organizationId: string): string => `agent@${organizationId}.example`;

/** Settings of clients and organizations under `grants`, by the names of grants. */
export interface KitRegistryOptions {
  client?: Record<string, object>;
  organization?: Record<string, object>;
  /** The `grant_types` of every client. */
  grantTypes?: string[] | undefined;
}

/** A registry with organizations and clients that have different permissions. */
export function kitRegistry({
  client = {},
  organization = {},
  grantTypes,
}: KitRegistryOptions = {}): Required<RegistryDocument> {
  const admits = { public_clients: [PUBLIC_SITE] };
  const ofOrganization = { grants: organization };
  const site = {
    client_type: 'web',
    scopes: ['customers:own'],
    grants: client,
    ...(grantTypes && { grant_types: grantTypes }),
  };
  const ownSite = { ...site, organization_id: OWN_ORGANIZATION, redirect_uris: [`${ORIGIN}/`] };
  return {
    organizations: [
      { id: OWN_ORGANIZATION, name: 'Own', license: { chat_between_groups: false }, ...admits, ...ofOrganization },
      {
        id: FOREIGN_ORGANIZATION,
        name: 'Foreign',
        license: { chat_between_groups: false },
        ...admits,
        ...ofOrganization,
      },
      { id: SHARED_ORGANIZATION, name: 'Shared', ...admits, ...ofOrganization },
    ],
    clients: [
      { client_id: SITE, name: 'Site', ...ownSite },
      { client_id: OTHER_SITE, name: 'Other site', ...ownSite },
      { client_id: UNLISTED_SITE, name: 'Site without grants', ...ownSite, grant_types: [] },
      { client_id: SILENT_SITE, name: 'Site that lists nothing', ...ownSite, grant_types: undefined },
      { client_id: BARE_SITE, name: 'Site without settings', ...ownSite, grants: {} },
      { client_id: PUBLIC_SITE, name: 'Widget', ...site, redirect_uris: [`${PUBLIC_ORIGIN}/`] },
      {
        client_id: FOREIGN_SITE,
        name: 'Foreign site',
        ...site,
        organization_id: FOREIGN_ORGANIZATION,
        redirect_uris: [`${FOREIGN_ORIGIN}/`],
      },
      {
        client_id: SHARED_SITE,
        name: 'Shared site',
        ...site,
        organization_id: SHARED_ORGANIZATION,
        redirect_uris: ['https://shared.example/'],
      },
    ],
    resource_servers: [],
    agents: [OWN_ORGANIZATION, FOREIGN_ORGANIZATION, SHARED_ORGANIZATION].map((organization_id) => ({
      email: agentEmail(organization_id),
      name: 'Agent',
      password: randomSecret('base64url'),
      organization_id,
      scopes: ['customers:own'],
    })),
  };
}
