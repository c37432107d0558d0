import type { QueryRunner, TableOptions } from 'typeorm';
import { type Columns, CreateTables, expiryIndex, NULLABLE } from './schema.js';

export class Registry1796000000000 extends CreateTables {
  protected readonly tables = (its: Columns): TableOptions[] => [
    {
      name: 'organization',
      columns: [
        its.key('id', 36),
        its.text('name', 200),
        its.flag('chat_between_groups'),
        its.json('grants'),
        its.json('public_clients', NULLABLE),
        its.integer('idle_days', NULLABLE),
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
        its.json('previous_secrets', NULLABLE),
        its.json('redirect_uris'),
        its.text('redirect_uri_match', 16),
        its.json('origins'),
        its.json('grant_types', NULLABLE),
        its.json('scopes'),
        its.json('grants'),
        its.integer('customer_token_ttl', NULLABLE),
        its.flag('owned_by_file'),
      ],
      indices: [{ name: 'client_application_of_organization', columnNames: ['organization_id', 'client_id'] }],
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
        its.integer('generation', { default: 0 }),
        its.integer('version', { default: 0 }),
      ],
      indices: [
        { name: 'agent_email', columnNames: ['email'], isUnique: true },
        { name: 'agent_of_organization', columnNames: ['organization_id', 'id'] },
      ],
    },
    {
      name: 'registry_revision',
      columns: [its.integer('id', { isPrimary: true }), its.integer('revision')],
    },
    {
      name: 'registry_change',
      columns: [
        its.integer('revision', { isPrimary: true }),
        its.key('resource', 64),
        its.key('entry_key', 128),
        its.time('expires_at'),
      ],
      indices: expiryIndex('registry_change'),
    },
    {
      name: 'applied_registry_file',
      columns: [
        its.key('content_hash', 64),
        its.text('text_hash', 64),
        its.integer('sequence'),
        its.integer('highest_revision', NULLABLE),
        its.time('applied_at'),
        its.text('grants_hash', 64),
        its.json('password_groups', NULLABLE),
        its.integer('registry_revision', NULLABLE),
      ],
      indices: [{ name: 'applied_registry_file_sequence', columnNames: ['sequence'], isUnique: true }],
    },
  ];

  override async up(runner: QueryRunner): Promise<void> {
    await super.up(runner);
    const rows: unknown[] = await runner.query('SELECT id FROM registry_revision');
    if (rows.length === 0) await runner.query('INSERT INTO registry_revision (id, revision) VALUES (1, 0)');
  }
}
