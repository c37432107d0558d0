import type { MigrationInterface, QueryRunner } from 'typeorm';
import { Columns, createTables, dropTables, NULLABLE } from './schema.js';

/**
 * Organizations, client applications, agents, resource servers, and customer identities with their browsers.
 *
 * The migration keeps its old name, because TypeORM has stored it in the databases of customers.
 */
export class House1795100000000 implements MigrationInterface {
  readonly name = 'House1795100000000';

  async up(runner: QueryRunner): Promise<void> {
    const its = new Columns(runner);
    await createTables(runner, [
      {
        name: 'organization',
        columns: [
          its.key('id', 36),
          its.text('name', 200),
          its.flag('chat_between_groups'),
          its.json('grants'),
          its.flag('owned_by_file'),
        ],
      },
      {
        name: 'client_application',
        columns: [
          its.key('client_id', 128),
          its.text('name', 200),
          its.text('client_type', 16),
          its.text('organization_id', 36, NULLABLE),
          its.text('secret_hash', 64, NULLABLE),
          its.json('redirect_uris'),
          its.text('redirect_uri_match', 16),
          its.json('origins'),
          its.json('grant_types', NULLABLE),
          its.json('scopes'),
          its.json('grants'),
          its.flag('owned_by_file'),
        ],
      },
      {
        name: 'resource_server',
        columns: [its.key('id', 128), its.text('secret_hash', 64), its.json('audiences'), its.flag('owned_by_file')],
      },
      {
        name: 'agent',
        columns: [
          its.key('id', 36),
          its.text('email', 254),
          its.text('name', 200),
          its.text('password_hash', 255),
          its.text('organization_id', 36),
          its.json('scopes'),
          its.flag('owned_by_file'),
        ],
        indices: [{ name: 'agent_email', columnNames: ['email'], isUnique: true }],
      },
      {
        name: 'registry_revision',
        columns: [its.integer('id', { isPrimary: true }), its.integer('revision')],
      },
      {
        name: 'customer_identity',
        columns: [
          its.key('entity_id', 36),
          its.text('browser_id', 36, NULLABLE),
          its.text('organization_id', 36, NULLABLE),
          its.text('group_id', 64, NULLABLE),
          its.text('secret_hash', 64, NULLABLE),
          its.integer('last_seen_day', NULLABLE),
          its.time('created_at'),
        ],
        indices: [
          {
            name: 'customer_identity_of_browser',
            columnNames: ['browser_id', 'organization_id', 'group_id'],
            isUnique: true,
          },
        ],
      },
    ]);
    const rows: unknown[] = await runner.query('SELECT id FROM registry_revision');
    if (rows.length === 0) await runner.query('INSERT INTO registry_revision (id, revision) VALUES (1, 0)');
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropTables(runner, [
      'customer_identity',
      'registry_revision',
      'agent',
      'resource_server',
      'client_application',
      'organization',
    ]);
  }
}
