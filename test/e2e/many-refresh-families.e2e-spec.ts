import { randomUUID } from 'node:crypto';
import { DataSource } from 'typeorm';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { sha256 } from '../../src/platform/secret.js';
import { FamilyDeletion } from '../../src/refresh-token/family-deletion.js';
import { RefreshFamily } from '../../src/refresh-token/refresh-family.entity.js';
import { RefreshToken } from '../../src/refresh-token/refresh-token.entity.js';
import { claimsOf } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { familiesOf, refreshCustomer, refreshingRegistry, rowsOf, stay, stayOf } from '../support/customer-refresh.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { purge } from '../support/operator-commands.js';
import { moveOf } from '../support/remember.js';
import { startTestService, type TestService } from '../support/test-service.js';
import { infoStatus } from '../support/transfers.js';

const ADMIN_TOKEN = 'operator-of-many-families-0123456789';
const ROWS_PER_INSERT = 500;
const MAX_ROWS_PER_DELETE = 1_000;

let service: TestService;
let dataSource: DataSource;
beforeAll(async () => {
  service = await startTestService({ registry: refreshingRegistry(), environment: { ADMIN_TOKEN } });
  dataSource = service.application.get(DataSource);
});
afterEach(() => service.clock.reset());
afterAll(() => service?.stop());

const erase = (id: string) => manage(service, 'DELETE', `/admin/identities/${id}`, bearer(ADMIN_TOKEN));

/** Inserts the hashes of `count` more refresh tokens. */
async function addTokens(count: number, familyOf: (index: number) => string, expiresAt: Date): Promise<void> {
  const tokens = Array.from({ length: count }, (_, index) => {
    return { hash: sha256(randomUUID()), familyId: familyOf(index), expiresAt, replacedAt: null };
  });
  for (let at = 0; at < count; at += ROWS_PER_INSERT)
    await dataSource.getRepository(RefreshToken).insert(tokens.slice(at, at + ROWS_PER_INSERT));
}

/** Inserts copies of the customer's family, with one token each. Each was used one minute before the next one. */
async function addFamilies(entityId: string, count: number): Promise<string[]> {
  const [family] = (await familiesOf(service, entityId)) as [RefreshFamily];
  const copies = Array.from({ length: count }, (_, index) => {
    const rotatedAt = new Date(family.rotatedAt.getTime() - (count - index) * 60_000);
    return { ...family, id: randomUUID(), currentHash: sha256(randomUUID()), rotatedAt };
  });
  for (const copy of copies) await dataSource.getRepository(RefreshFamily).insert(copy);
  await addTokens(count, (index) => copies[index]?.id as string, family.expiresAt);
  return copies.map(({ id }) => id);
}

describe('protocol §5.8: the erasure of a customer with many refresh families', () => {
  it('deletes 250 families with fewer than 40 statements', async () => {
    const { entity_id, access_token, refresh_token } = await stayOf(service);
    const ids = await addFamilies(entity_id, 250);
    const database = service.application.get(Database);
    const before = database.statements;
    expect((await erase(entity_id)).status).toBe(200);
    expect(database.statements - before).toBeLessThan(40);
    expect(await familiesOf(service, entity_id)).toEqual([]);
    for (const id of [ids[0], ids[99], ids[249]]) expect(await rowsOf(service, id as string)).toBe(0);
    expect(await infoStatus(service, access_token)).toBe(401);
    expectInvalidGrant(await refreshCustomer(service, refresh_token));
  });
});

describe('protocol §4.8: the number of refresh families of a customer', () => {
  const familyOf = (accessToken: string) => String(claimsOf(accessToken).jti).split('.')[0] as string;
  const idsOf = async (entityId: string) => (await familiesOf(service, entityId)).map(({ id }) => id);

  it('is at most 100: a further one deletes the family that was used longest ago', async () => {
    const first = await stayOf(service);
    const [oldest, ...others] = await addFamilies(first.entity_id, 99);
    const second = await stayOf(service, first.access_token);
    const ids = await idsOf(first.entity_id);
    const usable = [first.access_token, second.access_token].map(familyOf);
    expect(ids.sort()).toEqual([...others, ...usable].sort());
    expect(await rowsOf(service, oldest as string)).toBe(0);
    for (const { refresh_token } of [first, second])
      expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
  });

  it('counts ended families, which are deleted first', async () => {
    const { entity_id, access_token } = await stayOf(service);
    const [oldest, ...others] = await addFamilies(entity_id, 99);
    const ended = others.at(-1) as string;
    await dataSource.getRepository(RefreshFamily).update({ id: ended }, { endedAt: new Date(service.clock.now()) });
    await stayOf(service, access_token);
    const ids = await idsOf(entity_id);
    expect(ids).toHaveLength(100);
    expect(ids).toContain(oldest);
    expect(ids).not.toContain(ended);
  });

  it('is not reduced by an exchange that fails', async () => {
    const { entity_id, access_token } = await stayOf(service);
    await addFamilies(entity_id, 99);
    const { code } = await moveOf(service, access_token);
    expectInvalidGrant(await stay(service, { code, verifier: 'v'.repeat(43) }));
    expect(await idsOf(entity_id)).toHaveLength(100);
  });

  it('does not prevent the exchange if the deletion fails', async () => {
    const { entity_id, access_token } = await stayOf(service);
    await addFamilies(entity_id, 99);
    vi.spyOn(service.application.get(FamilyDeletion), 'delete').mockRejectedValueOnce(new Error('no disk'));
    const { refresh_token } = await stayOf(service, access_token);
    expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
    await stayOf(service, access_token);
    expect(await idsOf(entity_id)).toHaveLength(100);
  });
});

describe('the purge of a refresh family with many refresh tokens', () => {
  it('deletes at most 1000 rows with one statement', async () => {
    const { entity_id } = await stayOf(service);
    const [family] = (await familiesOf(service, entity_id)) as [RefreshFamily];
    await addTokens(2_500, () => family.id, new Date(service.clock.now() + 900 * 86_400_000));
    service.clock.advance({ seconds: 40 * 86_400 });
    const execute = vi.spyOn(service.application.get(Database), 'execute');
    await purge(service);
    const counts = await Promise.all(execute.mock.results.map(({ value }) => value as Promise<number>));
    execute.mockRestore();
    expect(Math.max(...counts)).toBe(MAX_ROWS_PER_DELETE);
    expect(await rowsOf(service, family.id)).toBe(0);
  });
});
