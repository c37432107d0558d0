import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Injectable, Module } from '@nestjs/common';
import { verify } from '@node-rs/argon2';
import { IsInt, Max } from 'class-validator';
import { DataSource } from 'typeorm';
import { beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { Agent } from '../../../src/registry/agent.entity.js';
import { ClientApplication } from '../../../src/registry/client-application.entity.js';
import { RegistryFile } from '../../../src/registry/file/registry-file.js';
import { RegistryFileError } from '../../../src/registry/file/yaml-document.js';
import { Organization } from '../../../src/registry/organization.entity.js';
import { RegistryRevision } from '../../../src/registry/registry-change.entity.js';
import { ResourceServer } from '../../../src/registry/resource-server.entity.js';
import { type Grant, GrantBody, type GrantResult } from '../../../src/token/grant.js';
import { GrantType } from '../../../src/token/grant-type.decorator.js';
import { usePasswordHashCostOfProduction } from '../../support/cheap-password-hashes.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import {
  ACME,
  ACME_AGENT,
  ACME_BACKEND,
  ACME_SITE,
  BACKEND_SECRET,
  RIVAL,
  testRegistry,
} from '../../support/test-registry.js';
import { useService } from '../../support/use-service.js';

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
  let dataSource: DataSource;
  let folder: string;
  beforeAll(async () => {
    dataSource = service.application.get(DataSource);
    folder = service.database.folder;
  });

  const file = (content: object | string, name = 'other.yaml') => {
    const path = join(folder, name);
    writeFileSync(path, typeof content === 'string' ? content : stringify(content));
    return path;
  };
  const registryFile = () => service.application.get(RegistryFile, { strict: false });
  const apply = (content: object | string) => registryFile().apply(file(content), { force: true });
  const rows = async () => [
    await dataSource.getRepository(Organization).find(),
    await dataSource.getRepository(ClientApplication).find(),
    await dataSource.getRepository(ResourceServer).find(),
    await dataSource.getRepository(Agent).find(),
    await dataSource.getRepository(RegistryRevision).find(),
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

  describe('that has an unknown field is rejected with the path of the field', () => {
    it.each<[string, object]>([
      ['surprise', { surprise: MARKER }],
      ['organizations[0].surprise', { organizations: [organization({ surprise: MARKER })] }],
      ['organizations[0].license.surprise', { organizations: [organization({ license: { surprise: MARKER } })] }],
      ['clients[1].redirect_uri', { clients: [client(), client({ client_id: 'b', redirect_uri: MARKER })] }],
      ['clients[0].owned_by_file', { clients: [client({ owned_by_file: false })] }],
      ['clients[0].ownedByFile', { clients: [client({ ownedByFile: false })] }],
      ['clients[0].secret_file', { clients: [client({ secret_file: 7 })] }],
      ['resource_servers[0].surprise', { resource_servers: [server({ surprise: MARKER })] }],
      ['agents[0].password_hash', { agents: [agent({ password_hash: MARKER })] }],
    ])('%s', async (path, document) => expect(await pathsOf(document)).toEqual([path]));
  });

  describe('that has a wrong type or value is rejected with the path of the field', () => {
    it.each<[string, object]>([
      ['organizations', { organizations: organization() }],
      ['organizations[0]', { organizations: [MARKER] }],
      ['organizations[0].id', { organizations: [organization({ id: MARKER })] }],
      ['organizations[0].id', { organizations: [organization({ id: ACME.toUpperCase() })] }],
      ['organizations[0].name', { organizations: [organization({ name: 'x'.repeat(201) })] }],
      ['organizations[0].license', { organizations: [organization({ license: true })] }],
      [
        'organizations[0].license.chat_between_groups',
        { organizations: [organization({ license: { chat_between_groups: MARKER } })] },
      ],
      ['clients[0].client_id', { clients: [client({ client_id: 'two words' })] }],
      ['clients[0].client_id', { clients: [client({ client_id: 'x'.repeat(129) })] }],
      ['clients[0].client_type', { clients: [client({ client_type: MARKER })] }],
      ['clients[0].customer_token_ttl', { clients: [client({ customer_token_ttl: 59 })] }],
      ['clients[0].customer_token_ttl', { clients: [client({ customer_token_ttl: 86_401 })] }],
      ['clients[0].customer_token_ttl', { clients: [client({ customer_token_ttl: 60.5 })] }],
      ['clients[0].client_secret', { clients: [client({ client_secret: '' })] }],
      ['clients[0].redirect_uri_match', { clients: [client({ redirect_uri_match: MARKER })] }],
      ['clients[0].scopes', { clients: [client({ scopes: ['two words'] })] }],
      ['clients[0].grants', { clients: [client({ grants: [] })] }],
      ['agents[0].email', { agents: [agent({ email: MARKER })] }],
      ['agents[0].password', { agents: [agent({ password: 12_345_678 })] }],
      ['agents[0].password', { agents: [agent({ password: 'MARK-7!' })] }],
      ['agents[0].password', { agents: [agent({ password: '😀'.repeat(7) })] }],
      ['clients[0].client_secret', { clients: [client({ client_secret: SHORT_SECRET })] }],
      ['clients[0].client_secret', { clients: [client({ client_secret: 'x'.repeat(257) })] }],
      ['resource_servers[0].secret', { resource_servers: [server({ secret: SHORT_SECRET })] }],
      ['resource_servers[0].secret', { resource_servers: [server({ secret: 'x'.repeat(257) })] }],
    ])('%s of %j', async (path, document) => expect(new Set(await pathsOf(document))).toEqual(new Set([path])));

    it.each(['- organizations', 'text', '42', 'true'])('a file that is not a mapping: %s', async (text) => {
      expect(await violationsOf(text)).toEqual(['must be a mapping']);
    });
  });

  it('must contain every required field, with a value other than null', async () => {
    const required = [
      'organizations[0].id',
      'organizations[0].name',
      'clients[0].client_id',
      'clients[0].name',
      'clients[0].client_type',
      'resource_servers[0].id',
      'resource_servers[0].secret',
      'resource_servers[0].audiences',
      'agents[0].password',
      'agents[0].email',
      'agents[0].name',
      'agents[0].organization_id',
    ];
    const names = (list: string) => required.filter((path) => path.startsWith(list)).map((path) => path.split('.')[1]);
    for (const value of [undefined, null]) {
      const lists = ['organizations', 'clients', 'resource_servers', 'agents'];
      const entry = (list: string) => ({ ...Object.fromEntries(names(list).map((name) => [name, value])) });
      const document = Object.fromEntries(lists.map((list) => [list, [entry(list)]]));
      expect(new Set(await pathsOf(document))).toEqual(new Set(required));
    }
  });

  it.each<[string, object]>([
    ['organizations[0]', { organizations: [null] }],
    ['clients[0].redirect_uris', { clients: [client({ redirect_uris: [null] })] }],
  ])('is rejected with an empty item in a list: %s', async (path, document) => {
    expect(new Set(await pathsOf(document))).toEqual(new Set([path]));
  });

  it('may contain an empty list or optional field, which counts as omitted', async () => {
    expect(await apply('organizations:\nclients:\nresource_servers:\nagents:\n')).toEqual([]);
    expect(await apply('')).toEqual([]);
    expect(await apply('# nothing\n')).toEqual([]);
    await apply({ clients: [client({ redirect_uris: null, scopes: null, grants: null, organization_id: null })] });
    const row = await dataSource.getRepository(ClientApplication).findOneByOrFail({ clientId: 'new' });
    expect(row).toMatchObject({ redirectUris: [], scopes: [], grants: {}, organizationId: null, grantTypes: null });
  });

  it.each<[string, object]>([
    ['organizations[1].id', { organizations: [organization(), organization({ name: 'Again' })] }],
    ['clients[2].client_id', { clients: [client(), client({ client_id: 'b' }), client({ name: 'Again' })] }],
    ['resource_servers[1].id', { resource_servers: [server(), server()] }],
    ['agents[1].email', { agents: [agent(), agent({ email: 'NEW@acme.example' })] }],
  ])('is rejected with an id that occurs twice: %s', async (path, document) => {
    expect(await pathsOf(document)).toEqual([path]);
  });

  it.each(['javascript:alert(1)', 'https://acme.example/#fragment', 'example.acme:/callback'])(
    'is rejected with a web redirect URI that is not an absolute http(s) URL or has a fragment: %j',
    async (uri) => {
      const redirect_uris = ['https://acme.example/', uri];
      expect(await pathsOf({ clients: [client({ redirect_uris })] })).toEqual(['clients[0].redirect_uris']);
    },
  );

  it.each(['nodots:/callback', 'example.acme:/callback#x', 'intent://x'])(
    'is rejected with a native redirect URI that has no scheme of its own (RFC 8252 §7.1): %s',
    async (uri) => {
      const document = { clients: [client({ client_type: 'native', redirect_uris: [uri] })] };
      expect(await pathsOf(document)).toEqual(['clients[0].redirect_uris']);
    },
  );

  it.each(['https://acme.example/', '*'])(
    'is rejected with an origin that no browser would send: %s',
    async (origin) => {
      expect(await pathsOf({ clients: [client({ origins: [origin] })] })).toEqual(['clients[0].origins']);
    },
  );

  it.each<[string[], object]>([
    [['clients[0].grant_types[1]'], { clients: [client({ grant_types: ['cookie', 'nope'] })] }],
    [['clients[0].grants.nope'], { clients: [client({ grants: { nope: {} } })] }],
    [['clients[0].grants.cookie'], { clients: [client({ grants: { cookie: {} } })] }],
    [['clients[0].grants.raffle'], { clients: [client({ grants: { raffle: 3 } })] }],
    [['clients[0].grants.raffle.tickets'], { clients: [client({ grants: { raffle: {} } })] }],
    [['clients[0].grants.raffle.tickets'], { clients: [client({ grants: { raffle: { tickets: 11 } } })] }],
    [['clients[0].grants.raffle.odds'], { clients: [client({ grants: { raffle: { tickets: 1, odds: 1 } } })] }],
    [
      ['organizations[0].grants.raffle.tickets'],
      { organizations: [organization({ grants: { raffle: { tickets: 'x' } } })] },
    ],
  ])('is rejected with an unknown grant or invalid grant settings: %j', async (paths, document) => {
    expect(new Set(await pathsOf(document))).toEqual(new Set(paths));
  });

  it('stores grant settings that the class of the grant accepts', async () => {
    await apply({ clients: [client({ grants: { raffle: { tickets: 3 } } })] });
    const row = await dataSource.getRepository(ClientApplication).findOneByOrFail({ clientId: 'new' });
    expect(row.grants).toEqual({ raffle: { tickets: 3 } });
  });

  it.each<[string, object]>([
    ['clients[0].organization_id', { clients: [client({ organization_id: UNKNOWN_ID })] }],
    ['agents[0].organization_id', { agents: [agent({ organization_id: UNKNOWN_ID })] }],
  ])('is rejected with an unregistered organization: %s', async (path, document) => {
    expect(await pathsOf(document)).toEqual([path]);
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
    ['two documents', `clients: []\n---\nclients: [{ client_secret: ${MARKER} }]\n`],
    ['a broken line', `clients:\n  - client_secret: "${MARKER}\n`],
    ['a tab', `clients:\n\t- client_secret: ${MARKER}\n`],
    ['an unknown anchor', `clients: [*${MARKER}]\n`],
    ['nested brackets without end', `clients: ${'['.repeat(500)}`],
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
      resource_servers: [server({ id: 7 })],
      agents: [
        agent({ email: MARKER }),
        agent({ password: undefined }),
        agent({ email: 'third@acme.example', password: undefined }),
      ],
    });
    expect(paths.sort()).toEqual(
      [
        'organizations[0].surprise',
        'organizations[1].id',
        'clients[0].redirect_uris',
        'clients[1].client_id',
        'clients[1].grant_types[0]',
        'clients[1].organization_id',
        'clients[2].client_secret_file',
        'resource_servers[0].id',
        'agents[0].email',
        'agents[1].password',
        'agents[2].password',
      ].sort(),
    );
  });

  it('must have a secret for a new agent or resource server, and keeps the secret of an existing one', async () => {
    expect(await pathsOf({ agents: [agent({ password: undefined })] })).toEqual(['agents[0].password']);
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
      const { passwordHash } = await dataSource.getRepository(Agent).findOneByOrFail({ email });
      expect(passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
      const { secretHash } = await dataSource
        .getRepository(ClientApplication)
        .findOneByOrFail({ clientId: ACME_BACKEND });
      expect(secretHash).toBe(createHash('sha256').update(BACKEND_SECRET).digest('hex'));
      const api = await dataSource.getRepository(ResourceServer).findOneByOrFail({ id: 'api' });
      expect(api.secretHash).toBe(createHash('sha256').update(MARKER).digest('hex'));
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
      const hash = createHash('sha256').update(`${MARKER} of a file`).digest('hex');
      const storedClient = dataSource.getRepository(ClientApplication).findOneByOrFail({ clientId: 'of-file' });
      expect((await storedClient).secretHash).toBe(hash);
      expect((await dataSource.getRepository(ResourceServer).findOneByOrFail({ id: 'of-file' })).secretHash).toBe(hash);
      const { passwordHash } = await dataSource.getRepository(Agent).findOneByOrFail({ email: 'of-file@acme.example' });
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
        'clients[0].client_secret',
        'clients[1].client_secret_file',
        'clients[3].client_secret_file',
        'clients[2].client_secret',
        'clients[4].client_secret',
        'resource_servers[0].secret',
      ]);
    });

    it('keep their hash if they have not changed, and get a new one otherwise', async () => {
      const hashOf = async () =>
        (await dataSource.getRepository(Agent).findOneByOrFail({ email: 'new@acme.example' })).passwordHash;
      await apply({ agents: [agent()] });
      const before = await hashOf();
      await apply({ agents: [agent({ name: 'Renamed' })] });
      expect(await hashOf()).toBe(before);
      await apply({ agents: [agent({ password: 'another pass phrase' })] });
      expect(await hashOf()).not.toBe(before);
      expect(await verify(await hashOf(), 'another pass phrase')).toBe(true);
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

    it('reports what it created, changed and left unchanged', async () => {
      await apply(testRegistry());
      const entries = [client({ client_id: 'fresh' }), { ...testRegistry().clients[0], name: 'Renamed' }];
      expect(await outcomes({ organizations: [testRegistry().organizations[0] as object], clients: entries })).toEqual([
        `unchanged: organization ${ACME}`,
        'created: client fresh',
        `changed: client ${ACME_SITE}`,
      ]);
    });

    it('owns the entries that it lists, and no others', async () => {
      const owned = async () => {
        const found = (await rows()).slice(0, 4).flat() as { ownedByFile: boolean }[];
        return found.filter(({ ownedByFile }) => ownedByFile).length;
      };
      const entries = Object.values(testRegistry()).flat().length;
      await apply(testRegistry());
      expect(await owned()).toBe(entries);
      await apply({ clients: [client()] });
      expect(await owned()).toBe(1);
      // The client that is no longer listed still exists.
      expect((await service.post(TOKEN, cookieBody())).status).toBe(200);
      expect(new Set((await outcomes(testRegistry())).map((line) => line.split(':')[0]))).toEqual(new Set(['changed']));
      expect(await owned()).toBe(entries);
    });

    it('can be exported, and applying the export again changes nothing', async () => {
      await apply({ ...testRegistry(), resource_servers: [server()] });
      const before = await registryFile().export();
      expect(before).not.toMatch(/MARKED|secret|password|argon2/);
      expect(new Set((await apply(before)).map(({ kind }) => kind)).size).toBe(4);
      expect(new Set((await apply(before)).map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
      expect(await registryFile().export()).toBe(before);
    });
  });
});
