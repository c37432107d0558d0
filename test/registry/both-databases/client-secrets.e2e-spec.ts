import { beforeEach, describe, expect, it } from 'vitest';
import { ClientApplication } from '../../../src/registry/client-application.entity.js';
import { askToken } from '../../support/agent-tokens.js';
import { expectError, expectInvalidRequest } from '../../support/expect-error.js';
import { ACME } from '../../support/test-registry.js';
import { DAY_SECONDS, useService } from '../../support/use-service.js';

const service = useService();
let clientId: string;
let first: string;
let clients = 0;
beforeEach(async () => {
  clientId = `rotated-${++clients}`;
  first = `the first secret of the client ${clientId}`;
  const entry = { client_id: clientId, name: 'Rotated', client_type: 'server', client_secret: first };
  expect((await admin('POST', 'clients', { ...entry, organization_id: ACME })).status).toBe(201);
});

const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);
const requestSecret = (body: object = {}) => admin('POST', `clients/${clientId}/secret`, body);
const newSecret = async (body: object = {}): Promise<string> => (await requestSecret(body)).body.client_secret;
/** The secrets that authenticate the client. */
const valid = (...secrets: string[]) =>
  Promise.all(
    secrets.map(async (client_secret) => {
      const request = { grant_type: 'refresh_token', refresh_token: 'unknown' };
      const { status } = await askToken(service, { client_id: clientId, client_secret, ...request });
      return status !== 401;
    }),
  );
const row = () => service.rowsOf(ClientApplication).findOneByOrFail({ clientId });

describe('a new client secret', () => {
  it('does not end the secret in use when the response is lost and the request is repeated', async () => {
    const lostResponse = await newSecret();
    service.clock.advance({ seconds: 60 });
    const received = await newSecret();
    expect(await valid(first, lostResponse, received)).toEqual([true, true, true]);
    service.clock.advance({ seconds: DAY_SECONDS - 120 });
    expect(await valid(first, received)).toEqual([true, true]);
  });

  it('does not extend the validity of an older secret, which may have leaked', async () => {
    const second = await newSecret({ old_valid_for: 600 });
    service.clock.advance({ seconds: 540 });
    const third = await newSecret({ old_valid_for: DAY_SECONDS });
    expect(await valid(first, second, third)).toEqual([true, true, true]);
    service.clock.advance({ seconds: 60 });
    expect(await valid(first, second, third)).toEqual([false, true, true]);
    service.clock.advance({ seconds: DAY_SECONDS - 120 });
    expect(await valid(second, third)).toEqual([true, true]);
    service.clock.advance({ seconds: 60 });
    expect(await valid(second, third)).toEqual([false, true]);
  });

  it('ends only the replaced secret at once if old_valid_for is 0', async () => {
    const second = await newSecret();
    const third = await newSecret({ old_valid_for: 0 });
    expect(await valid(first, second, third)).toEqual([true, false, true]);
  });

  it('is refused with a conflict while five replaced secrets are valid, and ends none of them', async () => {
    const secrets = [first];
    for (let n = 0; n < 5; n++) secrets.push(await newSecret({ old_valid_for: 600 + 60 * n }));
    const end = (await row()).previousSecrets?.[0]?.expires_at;
    expectError(await requestSecret(), {
      status: 409,
      error: 'conflict',
      hint: `client_id: 5 earlier secrets are still valid, one until ${end}; wait, or change client_secret, which ends them`,
    });
    expect(await valid(...secrets)).toEqual([true, true, true, true, true, true]);
    service.clock.advance({ seconds: 600 });
    const next = await newSecret();
    expect(await valid(...secrets, next)).toEqual([false, true, true, true, true, true, true]);
    expect((await row()).previousSecrets).toHaveLength(5);
  });

  it('is not lost when several are requested in parallel', async () => {
    const secrets = await Promise.all(Array.from({ length: 4 }, () => newSecret()));
    expect(await valid(first, ...secrets)).toEqual([true, true, true, true, true]);
  });

  it.each([
    ['a secret that the operator sets', { client_secret: 'a secret that the operator has chosen' }],
    ['null, which removes the secret', { client_secret: null }],
  ])('and all replaced secrets end because of %s', async (_what, patch) => {
    const second = await newSecret();
    const third = await newSecret();
    expect((await admin('PATCH', `clients/${clientId}`, patch)).status).toBe(200);
    expect(await valid(first, second, third)).toEqual([false, false, false]);
    expect(await row()).toMatchObject({ previousSecrets: null });
  });
});

describe('the first secret of a client', () => {
  const create = async (client_type: string) => {
    clientId = `without-secret-${++clients}`;
    const entry = { client_id: clientId, name: 'Without', client_type, organization_id: ACME };
    expect((await admin('POST', 'clients', entry)).body).toMatchObject({ has_secret: false });
  };

  it('is created for a server by the route that replaces secrets, and is shown once', async () => {
    await create('server');
    const response = await requestSecret();
    expect({ status: response.status, body: response.body }).toEqual({
      status: 200,
      body: { client_id: clientId, client_secret: expect.stringMatching(/^[\w-]{43}$/), old_valid_for: 0 },
    });
    expect(await valid(response.body.client_secret)).toEqual([true]);
    expect(service.audit.at(-1)).toMatchObject({
      subject: { kind: 'client', id: clientId },
      details: { change: 'changed', fields: ['client_secret'] },
    });
    const next = await newSecret({ old_valid_for: 60 });
    expect(await valid(response.body.client_secret, next)).toEqual([true, true]);
    service.clock.advance({ seconds: 60 });
    expect(await valid(response.body.client_secret, next)).toEqual([false, true]);
  });

  it.each(['web', 'native'])('is not created for a client of type %s, whose copies send no secret', async (type) => {
    await create(type);
    const hint = 'client_id: a client without a secret, and its client_type is not server';
    expectInvalidRequest(await requestSecret(), hint);
    expect((await row()).secretHash).toBeNull();
  });
});

describe('the entry of a client', () => {
  const read = async () => (await admin('GET', `clients/${clientId}`)).body;
  const endAfter = (seconds: number) => new Date(service.clock.now() + seconds * 1000).toISOString();

  it('says whether the client has a secret, and when the last replaced one ends', async () => {
    const { has_secret, ...rest } = await read();
    expect([has_secret, 'previous_secret_expires_at' in rest]).toEqual([true, false]);
    const inTenMinutes = endAfter(600);
    await newSecret({ old_valid_for: 600 });
    await newSecret({ old_valid_for: 60 });
    const { previous_secret_expires_at } = await read();
    expect(Date.parse(previous_secret_expires_at)).toBeGreaterThanOrEqual(Date.parse(inTenMinutes));
    expect(Date.parse(previous_secret_expires_at)).toBeLessThan(Date.parse(inTenMinutes) + 60_000);
    const listed = (await admin('GET', `clients?organization_id=${ACME}`)).body.clients;
    expect(listed).toContainEqual(expect.objectContaining({ client_id: clientId, previous_secret_expires_at }));
    service.clock.advance({ seconds: 660 });
    expect(await read()).not.toHaveProperty('previous_secret_expires_at');
    await admin('PATCH', `clients/${clientId}`, { client_secret: null });
    expect(await read()).toMatchObject({ has_secret: false });
  });

  it.each(['has_secret', 'previous_secret_expires_at'])('rejects %s in a request', async (field) => {
    const response = await admin('PATCH', `clients/${clientId}`, { [field]: true });
    expectInvalidRequest(response, `${field}: unknown field`);
  });
});
