import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { IsString } from 'class-validator';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { CustomerKey } from '../../../src/customer/customer-key.entity.js';
import { CUSTOMERS_OWN } from '../../../src/http/callers/principal.js';
import {
  type AgentPrincipal,
  CustomersByKey,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
} from '../../../src/public/grant.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { atNextTransaction, LOST_RESPONSE } from '../../support/dying-transactions.js';
import { expectError } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { beginWindow } from '../../support/limit-windows.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { times } from '../../support/races.js';
import { delaySelects } from '../../support/statements.js';
import { ACME, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { everythingIn } from '../../support/transfers.js';
import { serviceOfTest, type UsedService, useService } from '../../support/use-service.js';

const KEY_FILE = 'TEST_CUSTOMER_KEY_FILE';

class KeyBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @IsString()
  namespace!: string;

  @IsString()
  key!: string;
}

/** A real grant would check a proof that the caller has the key. */
@GrantType('test_key', { body: KeyBody, uses: 'unlimited', groups: true })
class KeyGrant implements Grant<KeyBody> {
  constructor(private readonly customers: CustomersByKey) {}

  async grant(request: GrantRequest<KeyBody>): Promise<GrantResult> {
    return this.customers.customerOf(request, request.body.namespace, request.body.key);
  }
}

@GrantType('test_key_of_agent', { body: KeyBody, uses: 'unlimited', agentScope: CUSTOMERS_OWN })
class AgentKeyGrant implements Grant<KeyBody, AgentPrincipal> {
  constructor(private readonly customers: CustomersByKey) {}

  async grant(request: GrantRequest<KeyBody, AgentPrincipal>): Promise<GrantResult> {
    return this.customers.customerOf(request, request.body.namespace, request.body.key);
  }
}

class KeyOfAnyOrganizationBody extends GrantBody {
  @IsString()
  key!: string;
}

@GrantType('test_key_without_organization', { body: KeyOfAnyOrganizationBody, uses: 'unlimited' })
class KeyOfAnyOrganizationGrant implements Grant<KeyOfAnyOrganizationBody> {
  constructor(private readonly customers: CustomersByKey) {}

  async grant(request: GrantRequest<KeyOfAnyOrganizationBody>): Promise<GrantResult> {
    return this.customers.customerOf(request, 'key', request.body.key);
  }
}

const grants = [KeyGrant, AgentKeyGrant, KeyOfAnyOrganizationGrant];
const extension = defineExtension({ grants, customerKeyFile: KEY_FILE });

/** Names the file of the key for the services that start then. Returns its path. */
function setKeyFile(text: string): string {
  const path = join(folder, 'customer-key.txt');
  writeFileSync(path, text);
  process.env[KEY_FILE] = path;
  return path;
}

const SECRET = 'the-secret-by-which-customers-are-found';
const output = new OutputCapture();
const folder = mkdtempSync(join(tmpdir(), 'customer-key-'));
const service = useService(() => {
  setKeyFile(`${SECRET}\n`);
  return { ...extension, log: output.log };
});
beforeEach(() => void setKeyFile(`${SECRET}\n`));
afterAll(() => rmSync(folder, { recursive: true }));

let phones = 0;
const newPhone = () => `+4916${1_000_000 + phones++}`;
const request = (key: string, more: object = {}, path = TOKEN, at: UsedService = service): Promise<TestResponse> => {
  const body = { grant_type: 'test_key', client_id: PUBLIC_SITE, organization_id: ACME, namespace: 'phone' };
  return at.post(path, { ...body, key, ...more });
};
const idOf = async (...parameters: Parameters<typeof request>): Promise<string> => {
  const { status, body } = await request(...parameters);
  expect(status).toBe(200);
  return body.entity_id;
};

const groupPath = (organization: string, group: string) => `/v2/customer/${organization}/${group}/token`;
const keysOf = (entityId: string) => service.rowsOf(CustomerKey).findBy({ entityId });

describe('CustomersByKey', () => {
  it('leads the same key to the same customer', async () => {
    const phone = newPhone();
    const first = await idOf(phone);
    expect(await idOf(phone)).toBe(first);
    expect(await idOf(newPhone())).not.toBe(first);
    expect(await idOf(` ${phone}`), 'the grant normalizes keys').not.toBe(first);
  });

  it('leads the same key to other customers in another namespace, organization and group', async () => {
    const phone = newPhone();
    const ids = [
      await idOf(phone),
      await idOf(phone, { namespace: 'fax' }),
      await idOf(phone, { organization_id: RIVAL }),
      await idOf(phone, {}, groupPath(ACME, 'sales')),
      await idOf(phone, {}, groupPath(ACME, 'support')),
      await idOf(phone, { organization_id: RIVAL }, groupPath(RIVAL, 'sales')),
    ];
    expect(new Set(ids).size).toBe(ids.length);
    expect(await idOf(phone, {}, groupPath(ACME, 'sales'))).toBe(ids[3]);
    const spaces = await Promise.all(ids.map((entityId) => identitiesOf(service).findOneByOrFail({ entityId })));
    expect(spaces.map(({ organizationId, groupId }) => [organizationId, groupId])).toEqual([
      [ACME, ''],
      [ACME, ''],
      [RIVAL, ''],
      [ACME, 'sales'],
      [ACME, 'support'],
      [RIVAL, 'sales'],
    ]);
  });

  it('creates one customer for 20 first requests at once on two processes', async () => {
    const other = await serviceOfTest({ ...extension, database: service.database });
    for (const each of [service, other]) delaySelects(each);
    const phone = newPhone();
    const before = await identitiesOf(service).count();
    const ids = await times(20, (index) => idOf(phone, {}, TOKEN, index % 2 === 0 ? service : other));
    expect(new Set(ids).size).toBe(1);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    expect(service.audit.concat(other.audit).filter(({ event }) => event === 'identity.created')).toHaveLength(1);
  });

  it('counts a customer once against the limit identities, also if parallel requests create it', async () => {
    const limited = await serviceOfTest({ ...extension, environment: { RATE_LIMIT: 'identities=3/60' } });
    beginWindow(limited);
    delaySelects(limited);
    const statuses = async (...keys: string[]) =>
      (await Promise.all(keys.map((key) => request(key, {}, TOKEN, limited)))).map(({ status }) => status);
    const phone = newPhone();
    expect(await statuses(phone, phone, phone)).toEqual([200, 200, 200]);
    expect(await statuses(newPhone(), newPhone())).toEqual([200, 200]);
    expect(await statuses(newPhone())).toEqual([429]);
    expect(await statuses(phone), 'a known customer').toEqual([200]);
  });

  it('finds the customer after a 503 because the response to the COMMIT was lost', async () => {
    const phone = newPhone();
    const before = await identitiesOf(service).count();
    atNextTransaction(service, 'after', () => Promise.reject(LOST_RESPONSE));
    expect((await request(phone)).status).toBe(503);
    expect(await identitiesOf(service).count()).toBe(before + 1);
    await idOf(phone);
    expect(await identitiesOf(service).count()).toBe(before + 1);
  });

  it('creates customers of the organization, or of the agent that calls', async () => {
    const creatorOf = (id: string) =>
      service.audit.find(({ event, subject }) => event === 'identity.created' && subject?.id === id)?.actor.kind;
    expect(creatorOf(await idOf(newPhone()))).toBe('organization');
    const agent = bearer(await issueAgentToken(service));
    const body = { grant_type: 'test_key_of_agent', client_id: PUBLIC_SITE, organization_id: ACME };
    const response = await service.post(TOKEN, { ...body, namespace: 'phone', key: newPhone() }, agent);
    expect(response.status).toBe(200);
    expect(creatorOf(response.body.entity_id)).toBe('agent');
  });

  it('leads the key of an erased customer to a new one', async () => {
    const phone = newPhone();
    const first = await idOf(phone);
    expect(await keysOf(first)).toHaveLength(1);
    expect((await service.erase(first)).status).toBe(200);
    expect(await keysOf(first)).toEqual([]);
    const second = await idOf(phone);
    expect(second).not.toBe(first);
    expect(await idOf(phone)).toBe(second);
  });

  it('exports the namespace of a key without its hash', async () => {
    const phone = newPhone();
    const id = await idOf(phone);
    const { body, text } = await service.admin('GET', `/admin/customers/${id}/export`);
    expect(body.tables.customer_key).toEqual([{ namespace: 'phone' }]);
    for (const { hash } of await keysOf(id)) expect(text).not.toContain(hash);
    expect(text).not.toContain(phone);
  });

  it('stores neither a key nor a hash by which it could be found', async () => {
    const phone = newPhone();
    await idOf(phone);
    const stored = await everythingIn(service);
    expect(stored).not.toContain(phone);
    for (const text of [phone, JSON.stringify([phone]), JSON.stringify(['phone', ACME, '', phone])])
      for (const algorithm of ['md5', 'sha1', 'sha256'])
        expect(stored).not.toContain(createHash(algorithm).update(text).digest('hex'));
  });

  it('needs the organization in the body: 500 otherwise, and the log says why', async () => {
    const body = { grant_type: 'test_key_without_organization', client_id: PUBLIC_SITE, key: newPhone() };
    const response = await service.post(TOKEN, body);
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    const logged = output.about(response.headers.get('x-request-id') ?? '').join();
    expect(logged).toContain('test_key_without_organization: the body must require organization_id');
  });

  it('without `customerKeyFile` in defineExtension gets 500, and the log says why', async () => {
    const captured = new OutputCapture();
    const without = await serviceOfTest({ ...defineExtension({ grants }), log: captured.log });
    const response = await request(newPhone(), {}, TOKEN, without);
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    expect(captured.lines.join()).toContain('CustomersByKey needs `customerKeyFile` in defineExtension');
  });
});

describe('the key of CustomersByKey', () => {
  it('leads to other customers after it has changed, and to the same ones with the earlier key again', async () => {
    const phone = newPhone();
    const first = await idOf(phone);
    setKeyFile('y'.repeat(32)); // the shortest secret
    const changed = await serviceOfTest({ ...extension, database: service.database });
    expect(await idOf(phone, {}, TOKEN, changed)).not.toBe(first);
    setKeyFile(SECRET);
    const again = await serviceOfTest({ ...extension, database: service.database });
    expect(await idOf(phone, {}, TOKEN, again)).toBe(first);
  });

  it.each([
    [
      'has less than 32 characters',
      () => void setKeyFile(` ${'x'.repeat(31)}\n\n`),
      'the file must have at least 32 characters',
    ],
    ['is missing', () => rmSync(setKeyFile(SECRET)), 'the file cannot be read'],
  ])('stops the start if its file %s', async (_, prepare, reason) => {
    prepare();
    await expect(serviceOfTest(extension)).rejects.toThrow(`${KEY_FILE}: ${reason}`);
  });

  it.runIf(onMariadb)('stops the start if the variable is not set, because all processes need the same', async () => {
    process.env[KEY_FILE] = '';
    await expect(serviceOfTest(extension)).rejects.toThrow(`${KEY_FILE}: required, because all processes`);
  });

  it.skipIf(onMariadb)('is generated with the embedded database if the variable is not set, and kept', async () => {
    process.env[KEY_FILE] = '';
    const first = await serviceOfTest(extension);
    const path = join(first.database.folder, 'customer-key');
    const key = readFileSync(path, 'utf8');
    expect(key).toMatch(/^[0-9a-f]{64}$/);
    expect(statSync(path).mode & 0o077).toBe(0);
    const phone = newPhone();
    const id = await idOf(phone, {}, TOKEN, first);
    const second = await serviceOfTest({ ...extension, database: first.database });
    expect(await idOf(phone, {}, TOKEN, second)).toBe(id);
    expect(readFileSync(path, 'utf8')).toBe(key);
  });
});
