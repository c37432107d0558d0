import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { JWT_BEARER } from '../../support/assertion-issuer.js';
import { expectInvalidRequest } from '../../support/expect-error.js';
import { applyRegistry } from '../../support/registry-files.js';
import { privateKey, TestIssuer } from '../../support/test-issuer.js';
import { useService } from '../../support/use-service.js';

let issuer: TestIssuer;
beforeAll(async () => {
  issuer = await TestIssuer.start();
});
afterAll(() => issuer.stop());

const output = new OutputCapture();
const service = useService(() => ({ environment: { JWKS_DIR: tmpdir() }, log: output.log }));
const jwks = () => ({ keys: issuer.keys.map(({ jwk }) => jwk) });
const jwks_uri = 'https://keys.example/jwks.json';
const identity = (more: object = {}) => ({
  issuer: `https://${randomUUID()}.example`,
  subject: 'backend',
  jwks_uri,
  ...more,
});

/** Each kind of entry that may have keys: its list, its key and its other fields. */
const KINDS: ['clients' | 'resource-servers', string, object][] = [
  ['clients', 'client_id', { name: 'Backend', client_type: 'server' }],
  ['resource-servers', 'id', { audiences: ['customer-api'] }],
];
const create = (list: string, key: string, fields: object, id: string = randomUUID()) =>
  service.admin('POST', `/admin/${list}`, { [key]: id, ...fields });
const createClient = (fields: object, id?: string) =>
  create('clients', 'client_id', { name: 'Backend', client_type: 'server', ...fields }, id);
const createServer = (fields: object) => create('resource-servers', 'id', { audiences: ['customer-api'], ...fields });

const INVALID: [string, () => object, RegExp][] = [
  ['keys and their URL', () => ({ jwks: jwks(), jwks_uri }), /^jwks: must not be set together with jwks_uri/m],
  ['keys and an identity', () => ({ jwks: jwks(), federated: identity() }), /^federated: must not be set together/m],
  ['a private key', () => ({ jwks: { keys: [privateKey('x')] } }), /^jwks: keys\[0\] must be a public key/m],
  ['no key', () => ({ jwks: { keys: [] } }), /^jwks: must be a JWK Set/m],
  ['keys over http', () => ({ jwks_uri: 'http://keys.example/' }), /^jwks_uri: must be an https URL/m],
  ['a file of its own keys', () => ({ jwks_file: 'a.json' }), /^jwks_file: unknown field/m],
  ['an identity that is a text', () => ({ federated: 'x' }), /^federated/m],
  ['an identity that is a list', () => ({ federated: [identity()] }), /^federated/m],
  ['an identity without keys', () => ({ federated: identity({ jwks_uri: undefined }) }), /^federated\.jwks: /m],
  ['an identity without a subject', () => ({ federated: identity({ subject: undefined }) }), /^federated\.subject: /m],
  [
    'an identity with a list of audiences',
    () => ({ federated: identity({ audience: ['a'] }) }),
    /^federated\.audience: /m,
  ],
  [
    'an unknown field of an identity',
    () => ({ federated: identity({ algorithms: ['none'] }) }),
    /algorithms: unknown/m,
  ],
  ...['../a.json', '/etc/a.json', '..', '.', '', 'a/b', 'a\u0000', '.hidden', 'x'.repeat(129)].map(
    (jwks_file): [string, () => object, RegExp] => [
      `the file ${JSON.stringify(jwks_file)}`,
      () => ({ federated: identity({ jwks_uri: undefined, jwks_file }) }),
      /^federated\.jwks_file: must be the name of a file/m,
    ],
  ),
  [
    'a file and a URL of keys',
    () => ({ federated: identity({ jwks_file: 'a.json' }) }),
    /^federated\.jwks_file: must not be set together with jwks_uri/m,
  ],
];

describe.each(KINDS)('an entry of %s', (list, key, fields) => {
  it.each<[string, () => object]>([
    ['keys of its own', () => ({ jwks: jwks() })],
    ['the URL of its own keys', () => ({ jwks_uri })],
    ['an identity with keys', () => ({ federated: identity({ jwks: jwks(), jwks_uri: undefined }) })],
    ['an identity with the URL of keys', () => ({ federated: identity({ audience: 'cas' }) })],
    ['an identity with a file of keys', () => ({ federated: identity({ jwks_uri: undefined, jwks_file: 'a.json' }) })],
  ])('may have %s and no secret, and responses show it', async (_, keys) => {
    const expected = JSON.parse(JSON.stringify(keys()));
    const created = await create(list, key, { ...fields, ...expected });
    expect(created).toMatchObject({ status: 201, body: { ...expected, has_secret: false } });
    const path = `/admin/${list}/${created.body[key]}`;
    const etag = created.headers.get('etag');
    expect((await service.admin('PATCH', path, expected)).headers.get('etag')).toBe(etag);
    expect((await service.admin('PUT', path, { ...fields, ...expected })).headers.get('etag')).toBe(etag);
    const replaced = await service.admin('PATCH', path, { jwks: null, federated: null, jwks_uri: `${jwks_uri}?2` });
    expect(replaced.body).toMatchObject({ jwks_uri: `${jwks_uri}?2` });
    expect(Object.keys(replaced.body)).not.toContain('federated');
    expect(service.audit.at(-1)?.details?.fields).toContain('jwks_uri');
  });

  // both kinds inherit the rules of these fields
  it.each(list === 'clients' ? INVALID : INVALID.slice(0, 3))('must not have %s', async (_, keys, violation) => {
    expectInvalidRequest(await create(list, key, { ...fields, ...keys() }), violation);
  });

  it('may have a secret and keys during a change-over, and then lose the secret', async () => {
    const secret = list === 'clients' ? 'client_secret' : 'secret';
    const { body } = await create(list, key, { ...fields, [secret]: 'x'.repeat(32), jwks: jwks() });
    expect(body.has_secret).toBe(true);
    const path = `/admin/${list}/${body[key]}`;
    expect((await service.admin('PATCH', path, { [secret]: null })).body).toMatchObject({ has_secret: false });
  });
});

it.each<[string, string, object, string]>([
  ['client', 'clients', { name: 'Backend', client_type: 'server' }, 'client_secret'],
  ['resource server', 'resource_servers', { audiences: ['customer-api'] }, 'secret'],
])(
  'a %s that has moved to keys in the file keeps its secret, and a warning says so',
  async (_, list, fields, secret) => {
    const entry = { [list === 'clients' ? 'client_id' : 'id']: randomUUID(), ...fields };
    const apply = (more: object) => applyRegistry(service, { [list]: [{ ...entry, ...more }] });
    const isWarned = () => output.text.includes(`${list}[0]: keys, and still a secret that the file does not list`);
    output.lines.length = 0;
    await apply({ [secret]: 'x'.repeat(32) });
    await apply({ [secret]: 'x'.repeat(32), jwks: jwks() });
    expect(isWarned()).toBe(false);
    await apply({ jwks: jwks() });
    expect(isWarned()).toBe(true);
    await expect(apply({ jwks: jwks(), [secret]: null })).rejects.toThrow(`${list}[0].${secret}: must not be null`);
    const path = `/admin/${list.replace('_', '-')}/${Object.values(entry)[0]}`;
    expect((await service.admin('PATCH', path, { [secret]: null })).body).toMatchObject({ has_secret: false });
    output.lines.length = 0;
    await apply({ jwks: jwks() });
    expect(isWarned()).toBe(false);
  },
);

it('keys must fit into their column together with the name of their field', async () => {
  const [key] = jwks().keys;
  const bytesOf = (x: string) => Buffer.byteLength(JSON.stringify({ keys: [{ ...key, x5c: [x] }] }));
  const keysOf = (bytes: number) => ({ keys: [{ ...key, x5c: ['x'.repeat(bytes - bytesOf(''))] }] });
  const apply = (keys: object) =>
    applyRegistry(service, {
      clients: [{ client_id: randomUUID(), name: 'Backend', client_type: 'server', jwks: keys }],
    });
  await apply(keysOf(65_526));
  await expect(apply(keysOf(65_527))).rejects.toThrow('clients[0].jwks: must have at most 65535 bytes');
});

it.each(['web', 'native'])('a %s client must not have keys', async (client_type) => {
  for (const keys of [{ jwks: jwks() }, { jwks_uri }, { federated: identity() }])
    expectInvalidRequest(await createClient({ client_type, ...keys }), /only for a client of the type server/);
});

it('a resource server needs a secret or keys, also after a change', async () => {
  expectInvalidRequest(await createServer({}), /^secret: required/);
  const { body } = await createServer({ jwks: jwks() });
  const path = `/admin/resource-servers/${body.id}`;
  expectInvalidRequest(await service.admin('PATCH', path, { jwks: null }), /^secret: required/);
  expectInvalidRequest(await service.admin('PUT', path, { audiences: ['customer-api'] }), /^secret: required/);
  const change = { jwks: null, secret: 'x'.repeat(32) };
  expect((await service.admin('PATCH', path, change)).body).toMatchObject({ has_secret: true });
  expectInvalidRequest(await service.admin('PATCH', path, { secret: null }), /^secret: required/);
});

describe('an identity', () => {
  const ofOther = 'another entry has the same issuer and subject';

  it.each<[string, string | undefined, string | undefined, boolean]>([
    ['both without an audience', undefined, undefined, false],
    ['one without an audience', undefined, 'a', false],
    ['the same audience', 'a', 'a', false],
    ['different audiences', 'a', 'b', true],
  ])('belongs to one entry: %s', async (_, first, second, isAccepted) => {
    const { issuer: name } = identity();
    const federated = (audience?: string, subject = 'backend') => identity({ issuer: name, audience, subject });
    const id = randomUUID();
    expect((await createClient({ federated: federated(first) }, id)).status).toBe(201);
    for (const response of [
      await createClient({ federated: federated(second) }),
      await createServer({ federated: federated(second) }),
    ]) {
      if (!isAccepted) expectInvalidRequest(response, new RegExp(`^federated\\.subject: ${ofOther}`));
      if (response.status === 201) await service.admin('DELETE', `/admin/clients/${response.body.client_id}`);
      if (isAccepted) break;
    }
    expect((await createClient({ federated: federated(first, 'other') })).status).toBe(201);
    const change = { federated: federated(first) };
    expect((await service.admin('PATCH', `/admin/clients/${id}`, change)).status, 'its own').toBe(200);
    await service.admin('DELETE', `/admin/clients/${id}`);
    expect((await createServer({ federated: federated(first) })).status, 'of a deleted entry').toBe(201);
  });

  it.each<[string, () => object]>([
    ['keys', () => ({ jwks: jwks() })],
    ['the URL of keys', () => ({ jwks_uri })],
  ])('is not that of an entry with %s of its own, in whichever order they come', async (_, keys) => {
    const sharedId = /^(client_)?id: an organization has it as an issuer, or another entry/;
    for (const audience of [undefined, 'a']) {
      const id = randomUUID();
      const federated = identity({ issuer: id, subject: id, audience });
      expect((await createClient(keys(), id)).status).toBe(201);
      expectInvalidRequest(await createServer({ federated }), new RegExp(`^federated\\.subject: ${ofOther}`));
      expect((await createServer({ federated: { ...federated, subject: 'other' } })).status).toBe(201);
      const other = randomUUID();
      expect((await createServer({ federated: identity({ issuer: other, subject: other, audience }) })).status).toBe(
        201,
      );
      expectInvalidRequest(await createClient(keys(), other), sharedId);
      expect((await createClient({ client_secret: 'x'.repeat(32) }, other)).status).toBe(201);
      expectInvalidRequest(await service.admin('PATCH', `/admin/clients/${other}`, keys()), sharedId);
      expectInvalidRequest(await createServer({ id, ...keys() }), sharedId);
    }
  });

  it('is no id of an entry with keys of its own that an organization has as an issuer, in either order', async () => {
    for (const audience of [undefined, ['a']]) {
      const organization = (issuer: string) => ({
        ...{ id: randomUUID(), name: 'Tenant' },
        grants: { [JWT_BEARER]: { issuer, jwks: jwks(), ...(audience && { audience }) } },
      });
      const [first, second] = [randomUUID(), randomUUID()];
      expect((await createClient({ jwks: jwks() }, first)).status).toBe(201);
      const rejected = await service.admin('POST', '/admin/organizations', organization(first));
      expectInvalidRequest(rejected, /audience: another organization accepts the same issuer, or an entry with keys/);
      expect((await service.admin('POST', '/admin/organizations', organization(second))).status).toBe(201);
      expectInvalidRequest(
        await createClient({ jwks: jwks() }, second),
        /^client_id: an organization has it as an issuer/,
      );
    }
  });

  it('has no issuer of an organization with the same audience, in whichever order they come', async () => {
    const grants = (name: string, audience?: string[]) => ({
      [JWT_BEARER]: { issuer: name, jwks: jwks(), ...(audience && { audience }) },
    });
    const organization = (settings: object) => ({ id: randomUUID(), name: 'Tenant', grants: settings });
    for (const [ofOrganization, ofClient, isAccepted] of [
      [undefined, undefined, false],
      [['a'], undefined, false],
      [undefined, 'a', false],
      [['a', 'b'], 'b', false],
      [['a'], 'b', true],
    ] as const) {
      for (const isClientFirst of [true, false]) {
        const federated = identity({ audience: ofClient });
        const createOrganization = () =>
          service.admin(
            'POST',
            '/admin/organizations',
            organization(grants(federated.issuer, ofOrganization?.slice())),
          );
        const createFirst = isClientFirst ? () => createClient({ federated }) : createOrganization;
        const createSecond = isClientFirst ? createOrganization : () => createClient({ federated });
        expect((await createFirst()).status).toBe(201);
        const second = await createSecond();
        expect(second.status).toBe(isAccepted ? 201 : 400);
        if (!isAccepted) expect(second.body.error_hint).toMatch(/an audience, and no value may be in both/);
      }
    }
  });

  it('is compared in a registry file, too', async () => {
    const federated = identity();
    const entry = (client_id: string) => ({ client_id, name: 'Backend', client_type: 'server', federated });
    await expect(applyRegistry(service, { clients: [entry(randomUUID()), entry(randomUUID())] })).rejects.toThrow(
      `clients[0].federated.subject: ${ofOther}`,
    );
    const id = randomUUID();
    await applyRegistry(service, { clients: [entry(id)] });
    expect(await applyRegistry(service, { clients: [entry(id)] })).toMatchObject([{ outcome: 'unchanged' }]);
  });
});
