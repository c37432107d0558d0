import { randomUUID } from 'node:crypto';
import { Injectable, Module } from '@nestjs/common';
import { verify } from '@node-rs/argon2';
import { IsInt, Max } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { RegistryFileError } from '../../src/operator/registry/file/yaml-document.js';
import { sha256 } from '../../src/platform/secret.js';
import { Agent } from '../../src/registry/agent.entity.js';
import { ClientApplication } from '../../src/registry/client-application.entity.js';
import { Organization } from '../../src/registry/organization.entity.js';
import { RegistryRevision } from '../../src/registry/registry-revision.entity.js';
import { ResourceServer } from '../../src/registry/resource-server.entity.js';
import { type Grant, GrantBody, type GrantResult, GrantType } from '../../src/token/grant.js';
import { usePasswordHashCostOfProduction } from '../support/cheap-password-hashes.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { atNextTransaction } from '../support/dying-transactions.js';
import { applyRegistry, exportOf, writeFileOf } from '../support/registry-files.js';
import { runOffboarding } from '../support/tenants.js';
import { ACME, ACME_AGENT, ACME_BACKEND, BACKEND_SECRET, RIVAL, testRegistry } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

class RaffleSettings {
  @IsInt()
  @Max(10)
  tickets!: number;
}

/** A grant that has settings. */
@Injectable()
@GrantType('raffle', { body: GrantBody, settings: RaffleSettings })
class RaffleGrant implements Grant<GrantBody> {
  async grant(): Promise<GrantResult> {
    return { entityId: 'raffle', organizationId: ACME };
  }
}

@Module({ providers: [RaffleGrant] })
class RaffleModule {}

const MARKER = 'MARKED-secret-of-at-least-32-characters';
const SHORT_SECRET = 'MARKED-secret-of-31-characters.';
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const DELETED_ID = '00000000-0000-4000-8000-000000000002';
const NEW_ID = '00000000-0000-4000-8000-000000000001';

const organization = (more: object = {}) => ({ id: ACME, name: 'Acme', ...more });
const client = (more: object = {}) => ({ client_id: 'new', name: 'New', client_type: 'web', ...more });
const server = (more: object = {}) => ({ id: 'api', secret: MARKER, audiences: ['customer-api'], ...more });
const agent = (more: object = {}) => ({
  email: 'new@acme.example',
  name: 'New',
  password: MARKER,
  organization_id: ACME,
  ...more,
});

describe('protocol §8.1: the registry file', () => {
  const service = useService({ modules: [RaffleModule] });
  const file = (content: string, name: string) => writeFileOf(service, content, name);
  const apply = (content: object | string) => applyRegistry(service, content);
  const rows = async () => [
    await service.rowsOf(Organization).find(),
    await service.rowsOf(ClientApplication).find(),
    await service.rowsOf(ResourceServer).find(),
    await service.rowsOf(Agent).find(),
    await service.rowsOf(RegistryRevision).find(),
  ];

  /** The violations of a rejected file. Asserts that nothing has changed and that no message contains the marker. */
  const violationsOf = async (content: object | string): Promise<string[]> => {
    const before = await rows();
    const error = await apply(content).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RegistryFileError);
    expect(error.message + error.stack).not.toContain('MARKED');
    for (const violation of error.violations) expect(error.message).toContain(violation);
    expect(await rows()).toEqual(before);
    return error.violations;
  };
  /** The path of each violation. */
  const pathsOf = async (content: object | string) =>
    (await violationsOf(content)).map((violation) => violation.split(': ')[0]);

  it.each<[string, object]>([
    // an unknown field
    ['surprise', { surprise: MARKER }],
    ['revision', { revision: 2 }],
    ['organizations[0].license.surprise', { organizations: [organization({ license: { surprise: MARKER } })] }],
    ['clients[1].redirect_uri', { clients: [client(), client({ client_id: 'b', redirect_uri: MARKER })] }],
    ['clients[0].fromFile', { clients: [client({ fromFile: false })] }],
    ['agents[0].password_hash', { agents: [agent({ password_hash: MARKER })] }],
    // a wrong type or value
    ['organizations', { organizations: organization() }],
    ['organizations[0]', { organizations: [null] }],
    ['organizations[0].id', { organizations: [organization({ id: ACME.toUpperCase() })] }],
    ['organizations[0].name', { organizations: [organization({ name: 'x'.repeat(201) })] }],
    ['organizations[0].license', { organizations: [organization({ license: MARKER })] }],
    ['clients[0].client_id', { clients: [client({ client_id: 'two words' })] }],
    ['clients[0].client_type', { clients: [client({ client_type: MARKER })] }],
    ['clients[0].scopes', { clients: [client({ scopes: ['two words'] })] }],
    ['clients[0].redirect_uris', { clients: [client({ redirect_uris: [null] })] }],
    ['clients[0].redirect_uris', { clients: [client({ redirect_uris: ['https://acme.example/#fragment'] })] }],
    ['clients[0].redirect_uris', { clients: [client({ redirect_uris: ['example.acme:/callback'] })] }],
    ['clients[0].redirect_uris', { clients: [client({ client_type: 'native', redirect_uris: ['nodots:/callback'] })] }],
    ['clients[0].origins', { clients: [client({ origins: ['https://acme.example/'] })] }],
    ['agents[0].email', { agents: [agent({ email: MARKER })] }],
    ['agents[0].password', { agents: [agent({ password: '😀'.repeat(7) })] }],
    ['clients[0].client_secret', { clients: [client({ client_secret: SHORT_SECRET })] }],
    ['resource_servers[0].secret', { resource_servers: [server({ secret: SHORT_SECRET })] }],
    ['resource_servers[0].events', { resource_servers: [server({ events: 'none' })] }],
    ['resource_servers[0].events', { resource_servers: [server({ events: ['not-a-uuid'] })] }],
    ['resource_servers[0].events', { resource_servers: [server({ events: [UNKNOWN_ID, UNKNOWN_ID] })] }],
    [
      'resource_servers[0].events',
      { resource_servers: [server({ events: Array.from({ length: 1_001 }, () => randomUUID()) })] },
    ],
    ['resource_servers[0].events', { resource_servers: [server({ audiences: ['agent-api'], events: 'all' })] }],
    // an unknown grant or invalid settings of a grant
    ['clients[0].grant_types[1]', { clients: [client({ grant_types: ['cookie', 'nope'] })] }],
    ['clients[0].grants', { clients: [client({ grants: [] })] }],
    ['clients[0].grants.cookie', { clients: [client({ grants: { cookie: {} } })] }],
    ['clients[0].grants.raffle.tickets', { clients: [client({ grants: { raffle: { tickets: 11 } } })] }],
    ['clients[0].grants.raffle.odds', { clients: [client({ grants: { raffle: { tickets: 1, odds: 1 } } })] }],
    ['organizations[0].grants.raffle', { organizations: [organization({ grants: { raffle: 3 } })] }],
    // an id that occurs twice, and an unregistered organization
    ['organizations[1].id', { organizations: [organization(), organization({ name: 'Again' })] }],
    ['agents[1].email', { agents: [agent(), agent({ email: 'NEW@acme.example' })] }],
    ['clients[0].organization_id', { clients: [client({ organization_id: UNKNOWN_ID })] }],
    ['agents[0].organization_id', { agents: [agent({ organization_id: UNKNOWN_ID })] }],
  ])('is rejected with the path of the violation: %s in %j', async (path, document) => {
    expect(new Set(await pathsOf(document))).toEqual(new Set([path]));
  });

  it('must contain every required field, with a value other than null', async () => {
    const required = {
      organizations: ['id', 'name'],
      clients: ['client_id', 'name', 'client_type'],
      resource_servers: ['id', 'secret', 'audiences'],
      agents: ['email', 'name', 'organization_id'],
    };
    const paths = Object.entries(required).flatMap(([list, names]) => names.map((name) => `${list}[0].${name}`));
    for (const value of [undefined, null]) {
      const entry = (names: string[]) => Object.fromEntries(names.map((name) => [name, value]));
      const document = Object.entries(required).map(([list, names]) => [list, [entry(names)]]);
      expect(new Set(await pathsOf(Object.fromEntries(document)))).toEqual(new Set(paths));
    }
  });

  it('may contain an empty list or optional field, which counts as omitted', async () => {
    expect(await apply('organizations:\nclients:\nresource_servers:\nagents:\n')).toEqual([]);
    expect(await apply('# nothing\n')).toEqual([]);
    const grants = { raffle: { tickets: 3 } };
    await apply({ clients: [client({ redirect_uris: null, scopes: null, grants, organization_id: null })] });
    const row = await service.rowsOf(ClientApplication).findOneByOrFail({ clientId: 'new' });
    expect(row).toMatchObject({ redirectUris: [], scopes: [], grants, organizationId: null, grantTypes: null });
  });

  it('may refer to an organization of the same file or of an earlier one', async () => {
    const applied = await apply({
      organizations: [organization({ id: NEW_ID })],
      clients: [client({ organization_id: NEW_ID }), client({ client_id: 'other', organization_id: RIVAL })],
    });
    expect(applied.map(({ outcome }) => outcome)).toEqual(['created', expect.anything(), 'created']);
  });

  it.each<[string, string]>([
    ['two keys of one name', `clients:\n  - { client_id: a, client_secret: ${MARKER}, client_id: b }\n`],
    ['a broken line', `clients:\n  - client_secret: "${MARKER}\n`],
    ['an unknown anchor', `clients: [*${MARKER}]\n`],
    ['no mapping', '42'],
  ])('is rejected without quoting the line when it is not YAML: %s', async (_what, text) => {
    expect((await violationsOf(text)).length).toBeGreaterThan(0);
  });

  it('is rejected when its aliases would expand to 12^12 values', async () => {
    const levels = Array.from({ length: 12 }, (_, at) => `l${at + 1}: &l${at + 1} [${`*l${at},`.repeat(12)}]`);
    expect(await violationsOf(['l0: &l0 [MARKED]', ...levels].join('\n'))).toHaveLength(1);
  });

  it('is rejected with all violations of all kinds together', async () => {
    const paths = await pathsOf({
      organizations: [organization({ surprise: 1 }), organization()],
      clients: [
        client({ redirect_uris: ['/'] }),
        client({ grant_types: ['nope'], organization_id: UNKNOWN_ID }),
        client({ client_id: 'file', client_secret_file: `${MARKER}.txt` }),
      ],
      agents: [agent({ email: MARKER }), agent({ organization_id: UNKNOWN_ID })],
    });
    expect(paths.sort()).toEqual([
      ...['agents[0].email', 'agents[1].organization_id', 'clients[0].redirect_uris', 'clients[1].client_id'],
      ...['clients[1].grant_types[0]', 'clients[1].organization_id', 'clients[2].client_secret_file'],
      ...['organizations[0].surprise', 'organizations[1].id'],
    ]);
  });

  it('must have a secret for a new resource server, and keeps the secret of an existing entry', async () => {
    expect(await pathsOf({ resource_servers: [server({ secret: undefined })] })).toEqual([
      'resource_servers[0].secret',
    ]);
    await apply({ agents: [agent()], resource_servers: [server()] });
    const before = await rows();
    await apply({ agents: [agent({ password: undefined })], resource_servers: [server({ secret: undefined })] });
    expect(await rows()).toEqual(before);
  });

  describe('secrets', () => {
    usePasswordHashCostOfProduction();

    it('are stored only as hashes: passwords by argon2id, the others by SHA-256', async () => {
      const email = 'new-agent@acme.example';
      const agents = [...testRegistry().agents, agent({ email })];
      await apply({ ...testRegistry(), agents, resource_servers: [server()] });
      const everything = JSON.stringify(await rows());
      for (const secret of [MARKER, ACME_AGENT.password, BACKEND_SECRET]) expect(everything).not.toContain(secret);
      const { passwordHash } = await service.rowsOf(Agent).findOneByOrFail({ email });
      expect(passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
      const ofBackend = { clientId: ACME_BACKEND, secretHash: sha256(BACKEND_SECRET) };
      expect(await service.rowsOf(ClientApplication).countBy(ofBackend)).toBe(1);
      expect(await service.rowsOf(ResourceServer).countBy({ id: 'api', secretHash: sha256(MARKER) })).toBe(1);
    });

    it('may come from files next to the registry file', async () => {
      const secret_file = file(`${MARKER} of a file\n`, 'server.txt');
      file(`${MARKER} of a file\n`, 'client.txt');
      file('a pass phrase\n', 'agent.txt');
      await apply({
        clients: [client({ client_id: 'of-file', client_secret_file: 'client.txt' })],
        resource_servers: [server({ id: 'of-file', secret: undefined, secret_file })],
        agents: [agent({ email: 'of-file@acme.example', password: undefined, password_file: './agent.txt' })],
      });
      const hash = sha256(`${MARKER} of a file`);
      expect(await service.rowsOf(ClientApplication).countBy({ clientId: 'of-file', secretHash: hash })).toBe(1);
      expect(await service.rowsOf(ResourceServer).countBy({ id: 'of-file', secretHash: hash })).toBe(1);
      const { passwordHash } = await service.rowsOf(Agent).findOneByOrFail({ email: 'of-file@acme.example' });
      expect(await verify(passwordHash, 'a pass phrase')).toBe(true);
    });

    it('are rejected when they are given twice, or when their file is unreadable, empty or too short', async () => {
      file(MARKER, 'secret.txt');
      file('\n', 'empty.txt');
      file(`${SHORT_SECRET}\n`, 'short.txt');
      expect(
        await pathsOf({
          clients: [
            client({ client_secret: MARKER, client_secret_file: 'secret.txt' }),
            client({ client_id: 'b', client_secret_file: `${MARKER}.txt` }),
            client({ client_id: 'c', client_secret_file: 'empty.txt' }),
            client({ client_id: 'd', client_secret_file: '.' }),
            client({ client_id: 'e', client_secret_file: 'short.txt' }),
          ],
          resource_servers: [server({ secret: undefined, secret_file: 'short.txt' })],
        }),
      ).toEqual([
        'clients[1].client_secret_file',
        'clients[3].client_secret_file',
        'clients[0].client_secret',
        'clients[2].client_secret',
        'clients[4].client_secret',
        'resource_servers[0].secret',
      ]);
    });
  });

  describe('when it is applied', () => {
    const outcomes = async (content: object) =>
      (await apply(content)).map(({ outcome, kind, id }) => `${outcome}: ${kind} ${id}`);

    it('changes nothing the second time, not even the revision', async () => {
      await apply(testRegistry());
      const before = await rows();
      expect(new Set((await apply(testRegistry())).map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
      expect(await rows()).toEqual(before);
    });

    it('deletes no entry that it does not list', async () => {
      await apply(testRegistry());
      expect(await outcomes({ clients: [client()] })).toHaveLength(1);
      expect((await service.post(TOKEN, cookieBody())).status).toBe(200);
      expect(new Set((await apply(testRegistry())).map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
    });

    it('marks the entries that it lists, also an entry of the admin API', async () => {
      const added = client({ client_id: 'added' });
      expect((await service.admin('POST', '/admin/clients', added)).body.from_file).toBe(false);
      expect(await outcomes({ clients: [added] })).toEqual(['changed: client added']);
      expect((await service.admin('GET', '/admin/clients/added')).body.from_file).toBe(true);
    });

    it('writes its values again after the admin API has changed an entry', async () => {
      await apply({ clients: [client({ client_id: 'both' })] });
      const changed = await service.admin('PATCH', '/admin/clients/both', { name: 'By the admin API' });
      expect(changed).toMatchObject({ status: 200, body: { from_file: true } });
      expect(await outcomes({ clients: [client({ client_id: 'both' })] })).toEqual(['changed: client both']);
      expect((await service.admin('GET', '/admin/clients/both')).body.name).toBe('New');
    });

    it('leaves out an entry whose organization is deleted while it is applied', async () => {
      const entry = { id: DELETED_ID, name: 'Deleted', suspended: true };
      expect((await service.admin('POST', '/admin/organizations', entry)).status).toBe(201);
      expect((await service.admin('DELETE', `/admin/organizations/${DELETED_ID}`)).status).toBe(200);
      service.passDays(1.01);
      atNextTransaction(service, 'before', () => runOffboarding(service));
      const before = await service.rowsOf(ClientApplication).count();
      expect(await apply({ clients: [client({ client_id: 'of-deleted', organization_id: DELETED_ID })] })).toEqual([]);
      expect(await service.rowsOf(ClientApplication).count()).toBe(before);
    });

    it('can be exported, and applying the export again changes nothing', async () => {
      await apply({ ...testRegistry(), resource_servers: [server()] });
      const before = await exportOf(service);
      expect(before).not.toMatch(/MARKED|secret|password|argon2/);
      expect(new Set((await apply(before)).map(({ kind }) => kind)).size).toBe(4);
      expect(new Set((await apply(before)).map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
      expect(await exportOf(service)).toBe(before);
    });
  });
});
