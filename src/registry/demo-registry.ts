import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { randomSecret } from '../platform/secret.js';

export const DEMO = {
  organizationId: '390e44e6-f1e6-4368-86dd-b74514508c2e',
  clientId: '9cbf3a968289727cb3cdfe83ab1d9836',
  serverClientId: '2d1f4b7c90a84e35b6c1d8f7a2e0935c',
};

/**
 * The path of a demo registry with an organization, a web and a server application, and an agent. The first start
 * writes the file with random secrets (mode 0600). Later starts do not change it.
 */
export function demoRegistry(folder: string, authUrl: string): string {
  const path = join(folder, 'demo-registry.yaml');
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const redirect_uris = [...new Set(['http://localhost:3000/', `${authUrl}/`])];
  const registry = {
    organizations: [
      { id: DEMO.organizationId, name: 'Acme', license: { chat_between_groups: false }, public_clients: [] },
    ],
    clients: [
      {
        client_id: DEMO.clientId,
        name: 'Acme site',
        client_type: 'web',
        organization_id: DEMO.organizationId,
        redirect_uris,
        redirect_uri_match: 'prefix',
        scopes: ['customers:own'],
        grants: { identity_token: { remember: ['browser'] } },
      },
      {
        client_id: DEMO.serverClientId,
        name: 'Acme backend',
        client_type: 'server',
        organization_id: DEMO.organizationId,
        client_secret: randomSecret('base64url'),
        redirect_uris,
        scopes: ['customers:own'],
      },
    ],
    agents: [
      {
        email: 'agent@acme.example',
        name: 'Agent One',
        password: randomSecret('base64url').slice(0, 16),
        organization_id: DEMO.organizationId,
        scopes: ['customers:own'],
      },
    ],
  };
  writeFileSync(path, stringify(registry, { aliasDuplicateObjects: false }), { mode: 0o600, flag: 'wx' });
  return path;
}
