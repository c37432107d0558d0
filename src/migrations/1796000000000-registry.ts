import type { QueryRunner, TableIndexOptions, TableOptions } from 'typeorm';
import { type Columns, CreateTables, NULLABLE } from './schema.js';

/** The columns of an entry that stays as a row after its deletion. */
const retained = (its: Columns) => [its.integer('revision', { default: 0 }), its.time('deleted_at', NULLABLE)];

const suspension = (its: Columns) => [its.flag('suspended'), its.time('issued_before', NULLABLE)];

const revisionIndex = (table: string, key: string): TableIndexOptions => ({
  name: `${table}_revision`,
  columnNames: ['revision', key],
});

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
        its.time('offboarding_at', NULLABLE),
        ...suspension(its),
        its.flag('from_file'),
        ...retained(its),
      ],
      indices: [revisionIndex('organization', 'id')],
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
        its.json('assertion_keys', NULLABLE),
        its.json('redirect_uris'),
        its.text('redirect_uri_match', 16),
        its.json('origins'),
        its.json('grant_types', NULLABLE),
        its.json('scopes'),
        its.json('grants'),
        its.text('agent_id', 36, NULLABLE),
        ...suspension(its),
        its.flag('from_file'),
        ...retained(its),
      ],
      indices: [
        { name: 'client_application_of_organization', columnNames: ['organization_id', 'client_id'] },
        { name: 'client_application_agent_id', columnNames: ['agent_id'] },
        revisionIndex('client_application', 'client_id'),
      ],
    },
    {
      name: 'resource_server',
      columns: [
        its.key('id', 128),
        its.text('secret_hash', 64),
        its.json('assertion_keys', NULLABLE),
        its.json('audiences'),
        its.json('events', NULLABLE),
        its.flag('from_file'),
        ...retained(its),
      ],
      indices: [revisionIndex('resource_server', 'id')],
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
        its.flag('from_file'),
        its.integer('revision', { default: 0 }),
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
      columns: [
        its.integer('id', { isPrimary: true }),
        its.integer('revision'),
        its.integer('complete_from'),
        its.text('passwords_hash', 64),
      ],
    },
  ];

  override async up(runner: QueryRunner): Promise<void> {
    await super.up(runner);
    const rows: unknown[] = await runner.query('SELECT id FROM registry_revision');
    if (rows.length === 0)
      await runner.query(
        "INSERT INTO registry_revision (id, revision, complete_from, passwords_hash) VALUES (1, 0, 0, '')",
      );
  }
}
