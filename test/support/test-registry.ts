import { type RegistryDocument, writeRegistryFile } from '../../packages/conformance-kit/src/registry-file.js';

/** The registry of the tests: organizations that are isolated from each other, and their applications. */
export const ACME = '390e44e6-f1e6-4368-86dd-b74514508c2e';
export const RIVAL = '7a1d6e0c-52a7-4b8e-9f0e-0c1f9d1f7f11';
/** An organization whose groups share one identity. */
export const SHARED = 'b0f8b6b0-5b0a-4a7e-8a43-3c6a4a1c0d22';

export const ACME_SITE = 'acme-site';
export const ACME_ORIGIN = 'https://acme.example';
export const ACME_PAGE = 'https://acme.example/chat/';
/** Admits redirect URIs below `https://acme.example/app`. */
export const ACME_PREFIX = 'acme-prefix';
export const ACME_NATIVE = 'acme-native';
export const ACME_BACKEND = 'acme-backend';
/** May use only `agent_token`. */
export const ACME_NO_COOKIES = 'acme-no-cookies';
export const RIVAL_SITE = 'rival-site';
export const RIVAL_ORIGIN = 'https://rival.example';
export const SHARED_SITE = 'shared-site';
/** An organization that admits no public client. */
export const CLOSED = 'c2d3f1a4-3f57-4c1c-9a53-2f0a8f4b9e33';

/** A public client. All organizations except CLOSED admit it. */
export const PUBLIC_SITE = 'public-site';
/** The parameters with which a browser of ACME visits the other organization. */
export const AT_RIVAL = { client_id: PUBLIC_SITE, organization_id: RIVAL };
/** A customer that does not exist. */
export const UNKNOWN_CUSTOMER = '01890000-0000-7000-8000-000000000000';
export const PUBLIC_ORIGIN = 'https://widget.example';

export const ACME_AGENT = { email: 'agent@acme.example', password: 'correct horse battery staple' };
export const RIVAL_AGENT = { email: 'agent@rival.example', password: 'another long pass phrase' };
export const BACKEND_SECRET = 'backend-secret-with-enough-entropy';

export function testRegistry(): Required<RegistryDocument> {
  return {
    organizations: [
      { id: ACME, name: 'Acme', license: { chat_between_groups: false }, public_clients: 'all' },
      { id: RIVAL, name: 'Rival', license: { chat_between_groups: false }, public_clients: 'all' },
      { id: SHARED, name: 'Shared', public_clients: 'all' },
      { id: CLOSED, name: 'Closed' },
    ],
    clients: [
      {
        client_id: ACME_SITE,
        name: 'Acme site',
        client_type: 'web',
        organization_id: ACME,
        redirect_uris: [ACME_PAGE],
        scopes: ['customers:own'],
      },
      {
        client_id: ACME_PREFIX,
        name: 'Acme app',
        client_type: 'web',
        organization_id: ACME,
        redirect_uris: ['https://acme.example/app'],
        redirect_uri_match: 'prefix',
      },
      {
        client_id: ACME_NATIVE,
        name: 'Acme for phones',
        client_type: 'native',
        organization_id: ACME,
        redirect_uris: ['example.acme:/callback'],
        origins: ['capacitor://localhost'],
        scopes: ['customers:own'],
      },
      {
        client_id: ACME_BACKEND,
        name: 'Acme backend',
        client_type: 'server',
        organization_id: ACME,
        client_secret: BACKEND_SECRET,
        redirect_uris: ['https://backend.acme.example/callback'],
        scopes: ['customers:own'],
      },
      {
        client_id: ACME_NO_COOKIES,
        name: 'Acme bulk import',
        client_type: 'server',
        organization_id: ACME,
        client_secret: BACKEND_SECRET,
        grant_types: [],
      },
      {
        client_id: RIVAL_SITE,
        name: 'Rival site',
        client_type: 'web',
        organization_id: RIVAL,
        redirect_uris: ['https://rival.example/'],
        scopes: ['customers:own'],
      },
      {
        client_id: SHARED_SITE,
        name: 'Shared site',
        client_type: 'web',
        organization_id: SHARED,
        redirect_uris: ['https://shared.example/'],
      },
      {
        client_id: PUBLIC_SITE,
        name: 'Widget for everybody',
        client_type: 'web',
        redirect_uris: [`${PUBLIC_ORIGIN}/`],
        scopes: ['customers:own'],
      },
    ],
    resource_servers: [],
    agents: [
      { ...ACME_AGENT, name: 'Agent One', organization_id: ACME, scopes: ['customers:own'] },
      { ...RIVAL_AGENT, name: 'Agent Two', organization_id: RIVAL, scopes: ['customers:own'] },
    ],
  };
}

/** Entries of a registry. Those with one of these ids get other fields. */
export function changed(entries: object[], ids: string[], fields: object): object[] {
  return entries.map((entry) => {
    const { client_id, email, id } = entry as Record<string, string>;
    return ids.includes(client_id ?? email ?? id ?? '') ? { ...entry, ...fields } : entry;
  });
}

export function writeRegistry(path: string, registry: RegistryDocument = testRegistry()): string {
  return writeRegistryFile(path, registry);
}
