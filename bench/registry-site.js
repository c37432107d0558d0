// @ts-check
/** Registries of many clients. Each has one organization per 5 clients, and one agent per 100 clients. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { CLIENT, ORGANIZATION } from './site.js';

const CLIENTS_PER_ORGANIZATION = 5;
const CLIENTS_PER_AGENT = 100;

/** The id of an organization. @param {string} number of the registry @param {number} index */
const organizationId = (number, index) => `00000000-0000-4000-8000-${number}${String(index).padStart(6, '0')}`;

/**
 * Writes a registry file with the site of the benchmarks and new clients.
 *
 * @param {string} folder @param {number} count of clients
 */
export function writeRegistryFile(folder, count) {
  const number = numberOf(count);
  const listOf = (/** @type {number} */ length, /** @type {(index: number) => object} */ entry) =>
    Array.from({ length: Math.ceil(length) }, (_, index) => entry(index));
  const organizations = listOf(count / CLIENTS_PER_ORGANIZATION, (index) => ({
    id: organizationId(number, index),
    name: `Organization ${index}`,
    public_clients: [],
  }));
  const ofOrganization = (/** @type {number} */ index) => ({
    organization_id: organizationId(number, index % organizations.length),
    scopes: ['customers:own'],
  });
  const clients = listOf(count, (index) => ({
    client_id: `client-${number}-${index}`,
    name: `Client ${index}`,
    client_type: 'web',
    redirect_uris: [`https://client-${index}.example/chat/`],
    ...ofOrganization(index),
  }));
  const agents = listOf(count / CLIENTS_PER_AGENT, (index) => ({
    email: `agent-${number}-${index}@bench.example`,
    name: `Agent ${index}`,
    password: `password of the agent ${index}`,
    ...ofOrganization(index),
  }));
  organizations.push({ id: ORGANIZATION, name: 'Bench', public_clients: /** @type {never[]} */ ([CLIENT]) });
  clients.push(/** @type {never} */ ({ client_id: CLIENT, name: 'Site', client_type: 'web' }));
  const path = join(folder, `registry-${count}.yaml`);
  writeFileSync(path, stringify({ organizations, clients, agents }, { aliasDuplicateObjects: false }));
  return path;
}

/** Deletes every entry. @param {import('mysql2/promise').Connection} database */
export async function clearRegistry(database) {
  for (const table of ['agent', 'client_application', 'organization']) await database.query(`DELETE FROM ${table}`);
  // each process then reads all entries
  await database.query('UPDATE registry_revision SET complete_from = revision + 1, revision = revision + 1');
}

/**
 * Writes the rows of a registry without a file, as the admin API would create them.
 *
 * @param {import('mysql2/promise').Connection} database @param {number} count of clients
 */
export async function seedRegistry(database, count) {
  const number = numberOf(count);
  const id = (/** @type {string} */ index) => `CONCAT('00000000-0000-4000-8000-${number}', LPAD(${index}, 6, '0'))`;
  const organizations = Math.ceil(count / CLIENTS_PER_ORGANIZATION);
  await database.query(`
    INSERT INTO organization (id, name, chat_between_groups, grants, public_clients, from_file, suspended)
    SELECT ${id('seq')}, CONCAT('Organization ', seq), 1, '{}', '[]', 0, 0 FROM seq_0_to_${organizations - 1}`);
  await database.query(`
    INSERT INTO client_application (client_id, name, client_type, organization_id, redirect_uris, redirect_uri_match,
      origins, scopes, grants, from_file, suspended)
    SELECT CONCAT('client-${number}-', seq), CONCAT('Client ', seq), 'web', ${id(`seq MOD ${organizations}`)},
      CONCAT('["https://client-', seq, '.example/chat/"]'), 'exact', '[]', '["customers:own"]', '{}', 0, 0
    FROM seq_0_to_${count - 1}`);
  await database.query(`
    INSERT INTO agent (id, email, name, password_hash, organization_id, scopes, from_file)
    SELECT UUID(), CONCAT('agent-${number}-', seq, '@bench.example'), 'Agent', '', ${id('seq')}, '["customers:own"]', 0
    FROM seq_0_to_${Math.ceil(count / CLIENTS_PER_AGENT) - 1}`);
  // each process then reads all entries
  await database.query('UPDATE registry_revision SET complete_from = revision + 1, revision = revision + 1');
}

/** Six digits that differ between registries of different sizes. @param {number} count */
function numberOf(count) {
  return String(count).padStart(6, '0');
}
