import '../../support/registered-webhook.js';

import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { type Columns, CreateTables } from '../../../src/migrations/schema.js';
import { sha256 } from '../../../src/platform/secret.js';
import { expectError } from '../../support/expect-error.js';
import { applyRegistry, exportOf } from '../../support/registry-files.js';
import { ACME, testRegistry } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';
import { useService } from '../../support/use-service.js';
import { Webhook } from '../../support/webhook.resource.js';

const SECRET = 'MARKED-signing-secret-of-a-webhook';

class Webhooks1799000000000 extends CreateTables {
  protected readonly tables = (its: Columns) => {
    const texts = [its.text('name', 200), its.text('url', 200), its.text('organization_id', 36)];
    const rest = [its.text('signing_hash', 64), its.json('events'), its.flag('from_file'), its.integer('revision')];
    return [{ name: 'webhook', columns: [its.key('webhook_id', 128), ...texts, ...rest] }];
  };
}

describe('a resource that one file describes', () => {
  const output = new OutputCapture();
  const listed = {
    webhook_id: 'orders',
    name: 'Orders',
    url: 'https://hooks.example/orders',
    organization_id: ACME,
    events: ['order.created'],
  };
  const registry = { ...testRegistry(), webhooks: [{ ...listed, signing_secret: SECRET }] };

  const service = useService({ registry, migrations: [Webhooks1799000000000], log: output.log });

  const admin = (method: string, path: string, body?: object) => service.admin(method, `/admin/${path}`, body);
  const apply = (webhooks: object[]) => applyRegistry(service, { ...registry, webhooks });
  const violationsOf = (webhooks: object[]): Promise<string[]> =>
    apply(webhooks).then(
      () => [],
      (error) => error.violations,
    );
  const rows = () => service.rowsOf(Webhook).find();
  const lastAudit = () => service.audit.at(-1);
  const created = { ...listed, webhook_id: 'created', name: 'Created' };

  it('is applied from the registry file at the start, and only the hash of its secret is stored', async () => {
    const signingHash = sha256(SECRET);
    expect(await rows()).toEqual([
      expect.objectContaining({ webhookId: 'orders', organizationId: ACME, signingHash, fromFile: true }),
    ]);
  });

  it('rejects a registry file with violations of its rules, its reference and its secret', async () => {
    expect(await violationsOf([{ ...listed, url: 'http://hooks.example/' }])).toEqual([
      'webhooks[0].url: must be an https URL',
    ]);
    expect(await violationsOf([{ ...listed, organization_id: randomUUID() }])).toEqual([
      'webhooks[0].organization_id: not a registered organization',
    ]);
    expect(await violationsOf([{ ...listed, webhook_id: 'other' }])).toEqual([
      'webhooks[0].signing_secret: required for a new webhook',
    ]);
  });

  it('is exported without its secret, and the export can be applied', async () => {
    const exported = await exportOf(service);
    expect(parse(exported).webhooks).toEqual([listed]);
    const applied = await applyRegistry(service, exported);
    expect(new Set(applied.map(({ outcome }) => outcome))).toEqual(new Set(['unchanged']));
  });

  it('is listed, created, read, changed and deleted by the admin API, which never returns its secret', async () => {
    const shown = { ...created, from_file: false };
    const creation = await admin('POST', 'webhooks', { ...created, signing_secret: `${SECRET}-3` });
    expect({ status: creation.status, body: creation.body }).toEqual({ status: 201, body: shown });
    expect(lastAudit()).toMatchObject({
      actor: { kind: 'operator' },
      subject: { kind: 'webhook', id: 'created' },
      details: { change: 'created', fields: [] },
    });
    expect((await admin('GET', 'webhooks/created')).body).toEqual(shown);
    expect((await admin('GET', 'webhooks')).body).toEqual({ webhooks: [shown, { ...listed, from_file: true }] });
    expect((await admin('GET', `webhooks?organization_id=${ACME}&name=CREATED`)).body).toEqual({ webhooks: [shown] });
    const hash = async () => (await rows()).find(({ webhookId }) => webhookId === 'created')?.signingHash;
    const before = await hash();
    const changed = await admin('PATCH', 'webhooks/created', { name: 'Changed', signing_secret: `${SECRET}-4` });
    expect({ status: changed.status, body: changed.body }).toEqual({
      status: 200,
      body: { ...shown, name: 'Changed' },
    });
    const fieldsOfOthers = { client_secret: null, public_clients: null };
    expect((await admin('PATCH', 'webhooks/created', fieldsOfOthers)).status).toBe(200);
    expect(await hash()).toMatch(/^[0-9a-f]{64}$/);
    expect(await hash()).not.toBe(before);
    const changes = service.audit.filter(({ subject }) => subject?.id === 'created').map(({ details }) => details);
    expect(changes).toContainEqual({ change: 'changed', fields: ['name', 'signing_secret'] });
    expect((await admin('DELETE', 'webhooks/created')).body).toEqual({});
    expect(lastAudit()).toMatchObject({
      subject: { kind: 'webhook', id: 'created' },
      details: { change: 'deleted', fields: [] },
    });
    expectError(await admin('GET', 'webhooks/created'), { status: 404, error: 'not_found', hint: undefined });
    expect(output.text).not.toContain('MARKED');
  });

  it('prevents the deletion of an organization that it refers to', async () => {
    const id = randomUUID();
    await admin('POST', 'organizations', { id, name: 'Referred' });
    await admin('POST', 'webhooks', { ...created, organization_id: id, signing_secret: SECRET });
    const hint = 'clients or agents or webhooks still belong to this organization';
    expectError(await admin('DELETE', `organizations/${id}`), { status: 409, error: 'conflict', hint });
    await admin('DELETE', 'webhooks/created');
    expect((await admin('DELETE', `organizations/${id}`)).status).toBe(200);
  });

  it('has its routes and schemas in the OpenAPI document, whose responses have no secret', async () => {
    const { paths } = (await request(`${service.managementUrl}/openapi.json`, {})).body;
    const [list, one] = [paths['/admin/webhooks'], paths['/admin/webhooks/{key}']];
    expect(Object.keys(list)).toEqual(['servers', 'get', 'post']);
    expect(Object.keys(one)).toEqual(['servers', 'get', 'put', 'patch', 'delete']);
    const schema = list.post.requestBody.content['application/json'].schema;
    expect(schema.properties.signing_secret).toMatchObject({ type: 'string', minLength: 32, maxLength: 256 });
    const returned = one.get.responses[200].content['application/json'].schema;
    expect(Object.keys(returned.properties).sort()).toEqual([...Object.keys(listed), 'from_file'].sort());
    expect(list.get.responses[200].content['application/json'].schema.properties.webhooks.items.properties).toEqual(
      returned.properties,
    );
    const security = [list.get, list.post, one.get, one.put, one.patch, one.delete].map(
      (operation) => operation.security,
    );
    expect(security).toEqual(Array(6).fill([{ operator: [] }]));
  });
});
