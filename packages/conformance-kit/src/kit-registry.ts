import type { Type } from '@nestjs/common';
import { MODULE_METADATA } from '@nestjs/common/constants.js';
import type { Extension } from 'customer-authorization-service';
import { randomSecret } from 'customer-authorization-service/grant';
import { declaredProperties, GrantDecorator, type GrantMetadata } from 'customer-authorization-service/testing-host';
import type { RegistryDocument } from './registry-file.js';

/** The organization of the requests, and an unrelated one. */
export const OWN_ORGANIZATION = '1f0f7f6e-6c1c-4f43-9d0e-5d3d0f2b7a01';
export const FOREIGN_ORGANIZATION = '2a7be6c9-0b5e-4c39-8a55-9b8f1f6f5b02';

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

export const agentEmail = (organizationId: string): string => `agent@${organizationId}.example`;

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
  const own = { public_clients: [PUBLIC_SITE], grants: organization, license: { chat_between_groups: false } };
  const site = {
    client_type: 'web',
    scopes: ['customers:own'],
    grants: client,
    ...(grantTypes && { grant_types: grantTypes }),
  };
  const siteOf = (organization_id: string, origin: string) => ({
    ...site,
    organization_id,
    redirect_uris: [`${origin}/`],
  });
  const ownSite = siteOf(OWN_ORGANIZATION, ORIGIN);
  return {
    organizations: [
      { id: OWN_ORGANIZATION, name: 'Own', ...own },
      { id: FOREIGN_ORGANIZATION, name: 'Foreign', ...own, grants: withOtherIssuer(organization) },
    ],
    clients: [
      { client_id: SITE, name: 'Site', ...ownSite },
      { client_id: OTHER_SITE, name: 'Other site', ...ownSite },
      { client_id: UNLISTED_SITE, name: 'Site without grants', ...ownSite, grant_types: [] },
      { client_id: SILENT_SITE, name: 'Site that lists nothing', ...ownSite, grant_types: undefined },
      { client_id: BARE_SITE, name: 'Site without settings', ...ownSite, grants: {} },
      { client_id: PUBLIC_SITE, name: 'Widget', ...site, redirect_uris: [`${PUBLIC_ORIGIN}/`] },
      { client_id: FOREIGN_SITE, name: 'Foreign site', ...siteOf(FOREIGN_ORGANIZATION, FOREIGN_ORIGIN) },
    ],
    resource_servers: [],
    agents: [OWN_ORGANIZATION, FOREIGN_ORGANIZATION].map((organization_id) => ({
      email: agentEmail(organization_id),
      name: 'Agent',
      password: randomSecret('base64url'),
      organization_id,
      scopes: ['customers:own'],
    })),
  };
}

/** The registry rejects two organizations that accept the proofs of one issuer. */
function withOtherIssuer(grants: Record<string, object>): Record<string, object> {
  const entries = Object.entries(grants).map(([name, settings]) => [
    name,
    'issuer' in settings ? { ...settings, issuer: 'https://issuer.foreign.example' } : settings,
  ]);
  return Object.fromEntries(entries);
}

type Modules = Pick<Extension, 'modules'>;

/** The registry of the kit, whose clients may use all grants of the extension. */
export function routeRegistry({
  settings = {},
  ...kit
}: Modules & { settings?: { client?: object; organization?: object } }) {
  const grants = grantsOf(kit);
  const ofGrants = (entry: object = {}) =>
    Object.fromEntries(
      grants.flatMap(({ name, settings: declared }) => {
        const fields = declared ? declaredProperties(declared) : [];
        const own = Object.entries(entry).filter(([field]) => fields.includes(field));
        return own.length > 0 ? [[name, Object.fromEntries(own)]] : [];
      }),
    );
  const isOptIn = grants.some(({ optIn }) => optIn);
  return kitRegistry({
    client: ofGrants(settings.client),
    organization: ofGrants(settings.organization),
    grantTypes: isOptIn ? [...grants.map(({ name }) => name), 'cookie'] : undefined,
  });
}

export function grantsOf({ modules = [] }: Modules): GrantMetadata[] {
  const providers = modules.flatMap((each): unknown[] => {
    const { module, providers = [] } = 'module' in each ? each : { module: each };
    return [...(Reflect.getMetadata(MODULE_METADATA.PROVIDERS, module) ?? []), ...providers];
  });
  return providers.flatMap((provider) => {
    const declared = typeof provider === 'function' && Reflect.getMetadata(GrantDecorator.KEY, provider as Type);
    return declared ? [declared as GrantMetadata] : [];
  });
}
