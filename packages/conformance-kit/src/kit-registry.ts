import type { Extension } from '@customer-authorization/service';
import { randomSecret } from '@customer-authorization/service/grant';
import { declaredProperties, type GrantMetadata } from '@customer-authorization/service/testing-host';
import type { Type } from '@nestjs/common';
import { grantsOf } from './extension-classes.js';
import type { RegistryDocument } from './registry-file.js';

/** A client of an organization, and the origin of its pages. */
export interface KitClient {
  clientId: string;
  organizationId: string;
  origin: string;
}

/** The client of the requests. */
export const OWN: KitClient = {
  clientId: 'kit-site',
  organizationId: '1f0f7f6e-6c1c-4f43-9d0e-5d3d0f2b7a01',
  origin: 'https://kit.example',
};
/** A client of an unrelated organization. */
export const FOREIGN: KitClient = {
  clientId: 'kit-foreign-site',
  organizationId: '2a7be6c9-0b5e-4c39-8a55-9b8f1f6f5b02',
  origin: 'https://foreign.example',
};
/** Another client of the same organization, with the same settings. */
export const OTHER_CLIENT: KitClient = { ...OWN, clientId: 'kit-other-site' };

/** Two agents of an organization. */
export const agentEmail = (organizationId: string): string => `agent@${organizationId}.example`;
export const colleagueEmail = (organizationId: string): string => `colleague@${organizationId}.example`;

/** Settings of grants in the registry. Each grant of the extension gets the fields that its class declares. */
export interface Settings {
  /** The settings of every client. */
  client?: object;
  /** The settings of every organization. */
  organization?: object;
  /**
   * The settings in the other organization of the test. If omitted, they are the same, with another `issuer`: the
   * registry rejects two organizations that accept the proofs of one issuer.
   */
  other?: { client?: object; organization?: object };
}

/** A registry with two organizations, and with clients that may use all grants of an extension. */
export function kitRegistry(
  extension: Extension,
  settings: Settings = {},
  grants = grantsOf(extension),
): Required<RegistryDocument> {
  const { other = { client: settings.client, organization: withOtherIssuer(settings.organization) } } = settings;
  const clientOf = ({ clientId, organizationId, origin }: KitClient, own = settings.client) => ({
    client_id: clientId,
    name: clientId,
    client_type: 'web',
    scopes: ['customers:own'],
    redirect_uris: [`${origin}/`],
    grants: settingsOf(grants, own),
    organization_id: organizationId,
    ...(grants.some(({ optIn }) => optIn) && { grant_types: [...grants.map(({ name }) => name), 'cookie'] }),
  });
  const organizationOf = (id: string, own?: object) => ({
    ...{ id, name: id, license: { chat_between_groups: false } },
    grants: settingsOf(grants, own),
  });
  return {
    organizations: [
      organizationOf(OWN.organizationId, settings.organization),
      organizationOf(FOREIGN.organizationId, other.organization),
    ],
    clients: [clientOf(OWN), clientOf(OTHER_CLIENT), clientOf(FOREIGN, other.client)],
    resource_servers: [],
    agents: [OWN.organizationId, FOREIGN.organizationId].flatMap((organization_id) =>
      [agentEmail(organization_id), colleagueEmail(organization_id)].map((email) => ({
        ...{ email, name: 'Agent', password: randomSecret('base64url'), organization_id, scopes: ['customers:own'] },
      })),
    ),
  };
}

/** The fields of an entry that each grant declares, by the name of the grant. */
function settingsOf(grants: GrantMetadata[], entry: object = {}): Record<string, object> {
  const entries = grants.flatMap(({ name, settings }): [string, object][] => {
    const declared = settings ? declaredProperties(settings as Type<object>) : [];
    const own = Object.entries(entry).filter(([field]) => declared.includes(field));
    return own.length > 0 ? [[name, Object.fromEntries(own)]] : [];
  });
  return Object.fromEntries(entries);
}

const withOtherIssuer = (entry?: object): object | undefined =>
  entry && 'issuer' in entry ? { ...entry, issuer: 'https://issuer.foreign.example' } : entry;
