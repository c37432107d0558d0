/** Registries of many clients, with one organization per 5 clients and one agent per 100. */
import type { Connection } from 'mysql2/promise';

const CLIENTS_PER_ORGANIZATION = 5;
const CLIENTS_PER_AGENT = 100;

/** Differs between registries of different sizes. */
const prefixOf = (count: number) => `00000000-0000-4000-8000-${String(count).padStart(6, '0')}`;

/** Writes the rows of such clients, as the admin API would create them. */
export async function seedRegistry(database: Connection, count: number): Promise<void> {
  const id = (index: string) => `CONCAT('${prefixOf(count)}', LPAD(${index}, 6, '0'))`;
  const organizations = Math.ceil(count / CLIENTS_PER_ORGANIZATION);
  await database.query(`
    INSERT INTO organization (id, name, chat_between_groups, grants, public_clients, from_file, suspended)
    SELECT ${id('seq')}, CONCAT('Organization ', seq), 1, '{}', '[]', 0, 0 FROM seq_0_to_${organizations - 1}`);
  await database.query(`
    INSERT INTO client_application (client_id, name, client_type, organization_id, redirect_uris, redirect_uri_match,
      origins, scopes, grants, from_file, suspended)
    SELECT CONCAT('client-${count}-', seq), CONCAT('Client ', seq), 'web', ${id(`seq MOD ${organizations}`)},
      CONCAT('["https://client-', seq, '.example/chat/"]'), 'exact', '[]', '["customers:own"]', '{}', 0, 0
    FROM seq_0_to_${count - 1}`);
  await database.query(`
    INSERT INTO agent (id, email, name, password_hash, organization_id, scopes, from_file)
    SELECT UUID(), CONCAT('agent-${count}-', seq, '@bench.example'), 'Agent', '', ${id('seq')}, '["customers:own"]', 0
    FROM seq_0_to_${Math.ceil(count / CLIENTS_PER_AGENT) - 1}`);
  // each process then reads all entries
  await database.query('UPDATE registry_revision SET complete_from = revision + 1, revision = revision + 1');
}
