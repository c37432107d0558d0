// @ts-check
/** The registry of the soak: the site of all benchmarks, a backend with a secret, and an agent who signs in. */
import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CLIENT, ORGANIZATION, RESOURCE_SERVER } from '../site.js';

export const ADMIN_TOKEN = 'token-of-the-operator-of-the-soak-0123456789';
export const AGENT = { email: 'agent@soak.example', password: 'password of the agent' };
export const BACKEND = {
  id: 'backend',
  secret: 'secret-of-the-backend-0123456789abcdef',
  redirectUri: 'https://backend.example/callback',
};

const REGISTRY = `
organizations: [{ id: ${ORGANIZATION}, name: Bench, public_clients: all }]
clients:
  - { client_id: ${CLIENT}, name: Site, client_type: web, scopes: ['customers:own'] }
  - client_id: ${BACKEND.id}
    name: Backend
    client_type: server
    organization_id: ${ORGANIZATION}
    client_secret: ${BACKEND.secret}
    redirect_uris: ['${BACKEND.redirectUri}']
    scopes: ['customers:own']
resource_servers: [{ id: ${RESOURCE_SERVER.id}, secret: ${RESOURCE_SERVER.secret}, audiences: [customer-api] }]
agents:
  - email: ${AGENT.email}
    name: Agent
    password: ${AGENT.password}
    organization_id: ${ORGANIZATION}
    scopes: ['customers:own']
`;

/**
 * Writes the registry next to the keys. Returns the variables that the processes of the soak have in addition.
 *
 * @param {string} keysFile
 */
export function soakEnvironment(keysFile) {
  const registry = join(dirname(keysFile), 'soak.yaml');
  writeFileSync(registry, REGISTRY);
  return { REGISTRY_FILE: registry, ADMIN_TOKENS: `soak:support:${ADMIN_TOKEN}` };
}

/** The header of HTTP Basic authentication. @param {{ id: string, secret: string }} account */
export function basic({ id, secret }) {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` };
}

/** @param {string} token */
export function bearer(token) {
  return { authorization: `Bearer ${token}` };
}
