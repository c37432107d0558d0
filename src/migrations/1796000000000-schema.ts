import type { MigrationInterface, QueryRunner, TableOptions } from 'typeorm';
import { Columns, createTables, dropTables, expiryIndex, NULLABLE } from './schema.js';

/** The tables of release 1.0, by the folders that own them. */
export class Schema1796000000000 implements MigrationInterface {
  readonly name = 'Schema1796000000000';

  async up(runner: QueryRunner): Promise<void> {
    await createTables(runner, tablesOf(new Columns(runner)));
    if ((await runner.query('SELECT id FROM registry_revision')).length === 0)
      await runner.query('INSERT INTO registry_revision (id, revision) VALUES (1, 0)');
    if ((await runner.query('SELECT id FROM revocation_feed')).length === 0)
      await runner.query(`INSERT INTO revocation_feed (id, position, publisher, has_backlog, entries, entries_count)
        VALUES (1, 0, '', 1, 0, 0)`);
  }

  async down(runner: QueryRunner): Promise<void> {
    const names = tablesOf(new Columns(runner)).map(({ name }) => name);
    await dropTables(runner, names.reverse());
  }
}

const index = (name: string, ...columnNames: string[]) => ({ name, columnNames });
const uniqueIndex = (name: string, ...columnNames: string[]) => ({ name, columnNames, isUnique: true });

function tablesOf(its: Columns): TableOptions[] {
  return [
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
      indices: [index('client_application_of_organization', 'organization_id', 'client_id')],
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
      ],
      indices: [uniqueIndex('agent_email', 'email'), index('agent_of_organization', 'organization_id', 'id')],
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
      indices: [uniqueIndex('applied_registry_file_sequence', 'sequence')],
    },
    {
      name: 'revocation',
      columns: [
        its.key('kind', 16),
        its.key('value', 255),
        its.time('issued_before'),
        its.time('expires_at'),
        its.bigInteger('position', NULLABLE),
        its.time('published_until', NULLABLE),
        its.integer('generation', NULLABLE),
        its.text('audience', 16, NULLABLE),
      ],
      indices: [
        ...expiryIndex('revocation'),
        index('revocation_position', 'position'),
        index('revocation_published_until', 'published_until'),
      ],
    },
    { name: 'recorded_value', columns: [its.key('name', 64), its.integer('value')] },
    {
      name: 'revocation_feed',
      columns: [
        its.integer('id', { isPrimary: true }),
        its.bigInteger('position'),
        its.text('publisher', 36),
        its.flag('has_backlog'),
        its.integer('entries', { default: 0 }),
        its.integer('entries_count', { default: 0 }),
      ],
    },
    {
      name: 'customer',
      columns: [
        its.key('entity_id', 36),
        its.text('organization_id', 36),
        its.text('group_id', 64, NULLABLE),
        its.text('creator', 16, NULLABLE),
        its.integer('generation'),
        its.integer('link_generation'),
        its.integer('version'),
        its.integer('last_token_day', NULLABLE),
        its.time('erased_at', NULLABLE),
        its.time('created_at', NULLABLE),
      ],
    },
    {
      name: 'browser',
      columns: [its.key('browser_id', 36), its.text('secret_hash', 64), its.integer('version')],
    },
    {
      name: 'browser_customer',
      columns: [
        its.key('browser_id', 36),
        its.key('entity_id', 36),
        its.text('organization_id', 36, NULLABLE),
        its.text('group_id', 64, NULLABLE),
        its.text('origin', 16),
        its.text('began_in', 36),
        its.integer('generation'),
        its.integer('seen_day'),
        its.integer('signed_in_until', NULLABLE),
        its.text('root', 128, NULLABLE),
        its.json('lineage', NULLABLE),
        its.text('agent_id', 36, NULLABLE),
        its.integer('agent_generation', NULLABLE),
      ],
      indices: [
        uniqueIndex('browser_customer_of_scope', 'browser_id', 'organization_id', 'group_id'),
        index('browser_customer_of_customer', 'entity_id', 'organization_id', 'origin', 'began_in'),
      ],
    },
    {
      name: 'link_ancestor',
      columns: [its.key('entity_id', 36), its.key('browser_id', 36), its.key('ancestor_id', 128)],
      indices: [index('link_ancestor_ancestor_id', 'ancestor_id')],
    },
    { name: 'unfinished_erasure', columns: [its.key('entity_id', 36)] },
    {
      name: 'organization_user',
      columns: [
        its.key('entity_id', 36),
        its.text('organization_id', 36),
        its.text('user_hash', 64, NULLABLE),
        its.text('customer_id', 36),
        its.text('linked_by', 36),
        its.time('linked_at'),
      ],
      indices: [
        uniqueIndex('organization_user_of_organization', 'organization_id', 'user_hash'),
        index('organization_user_customer_id', 'customer_id'),
      ],
    },
    {
      name: 'one_time_code',
      columns: [
        its.key('hash', 64),
        its.text('kind', 16),
        its.text('client_id', 128),
        its.text('subject', 36),
        its.text('organization_id', 36),
        its.text('scope', 1000, NULLABLE),
        its.text('redirect_uri', 2000, NULLABLE),
        its.text('code_challenge', 43, NULLABLE),
        its.json('made_with'),
        its.time('expires_at'),
        its.time('consumed_at', NULLABLE),
        its.text('consumed_by', 36, NULLABLE),
        its.text('consumed_network', 64, NULLABLE),
      ],
      indices: [...expiryIndex('one_time_code'), index('one_time_code_subject', 'subject')],
    },
    {
      name: 'refresh_family',
      columns: [
        its.key('id', 36),
        its.text('family_hash', 64),
        its.text('client_id', 128),
        its.text('agent_id', 36, NULLABLE),
        its.integer('agent_generation', NULLABLE),
        its.text('customer_id', 36, NULLABLE),
        its.text('organization_id', 36),
        its.text('scope', 1000),
        its.json('lineage'),
        its.text('root', 128, NULLABLE),
        its.integer('generation'),
        its.time('begun_at'),
        its.text('current_hash', 64),
        its.text('previous_hash', 64, NULLABLE),
        its.text('successor_nonce', 43, NULLABLE),
        its.time('rotated_at'),
        its.text('rotated_network', 64, NULLABLE),
        its.time('counted_since'),
        its.integer('rotations'),
        its.time('ended_at', NULLABLE),
        its.time('expires_at'),
      ],
      indices: [
        uniqueIndex('refresh_family_family_hash', 'family_hash'),
        index('refresh_family_customer_id', 'customer_id'),
        ...expiryIndex('refresh_family'),
      ],
    },
    {
      name: 'refresh_family_ancestor',
      columns: [its.key('family_id', 36), its.key('ancestor_id', 128)],
      indices: [index('refresh_family_ancestor_ancestor_id', 'ancestor_id')],
    },
    {
      name: 'consent',
      columns: [
        its.key('agent_id', 36),
        its.key('client_id', 128),
        its.text('scope', 1000),
        its.text('organization_id', 36),
        its.text('password_fingerprint', 16),
        its.time('given_at'),
      ],
    },
    {
      name: 'used_assertion',
      columns: [its.key('hash', 64), its.text('used_by', 36), its.time('expires_at')],
      indices: expiryIndex('used_assertion'),
    },
  ];
}
