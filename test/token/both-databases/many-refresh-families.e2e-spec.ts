import { randomUUID } from 'node:crypto';
import { DataSource, In, type QueryResult } from 'typeorm';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Denylist } from '../../../src/access-token/denylist.js';
import { Database } from '../../../src/platform/database/database.js';
import { sha256 } from '../../../src/platform/secret.js';
import { RefreshFamily, RefreshFamilyAncestor } from '../../../src/refresh-token/refresh-family.entity.js';
import { RefreshTokens } from '../../../src/refresh-token/refresh-tokens.js';
import { claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import {
  familiesOf,
  refreshCustomer,
  refreshingRegistry,
  rowsOf,
  stay,
  stayOf,
} from '../../support/customer-refresh.js';
import { interceptTransactions } from '../../support/dying-transactions.js';
import { expectError, expectInvalidGrant } from '../../support/expect-error.js';
import { purge } from '../../support/operator-commands.js';
import { moveOf } from '../../support/remember.js';
import { infoStatus, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const service = useService({ registry: refreshingRegistry() });
let dataSource: DataSource;
beforeAll(async () => {
  dataSource = service.application.get(DataSource);
});

const erase = (id: string) => service.admin('DELETE', `/admin/identities/${id}`);

/** Inserts copies of the customer's family, each with a root of its own. Each was used a minute before the next one. */
async function addFamilies(entityId: string, count: number): Promise<string[]> {
  const [family] = (await familiesOf(service, entityId)) as [RefreshFamily];
  const copies = Array.from({ length: count }, (_, index) => {
    const rotatedAt = new Date(family.rotatedAt.getTime() - (count - index) * 60_000);
    const [id, root] = [randomUUID(), randomUUID()];
    return { ...family, id, root, familyHash: sha256(id), currentHash: sha256(root), rotatedAt };
  });
  for (const copy of copies) await dataSource.getRepository(RefreshFamily).insert(copy);
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

  it('does not count ended families', async () => {
    const { entity_id, access_token } = await stayOf(service);
    const [oldest, ...others] = await addFamilies(entity_id, 99);
    const ended = others.at(-1) as string;
    await dataSource.getRepository(RefreshFamily).update({ id: ended }, { endedAt: new Date(service.clock.now()) });
    await stayOf(service, access_token);
    const ids = await idsOf(entity_id);
    expect(ids).toContain(oldest);
    expect(ids).toContain(ended);
  });

  it.each<[string, (id: string) => Promise<unknown>]>([
    ['a reuse', (id) => service.application.get(RefreshTokens).end({ id, ownerKind: 'customer' })],
    ['a replay', (id) => service.application.get(Denylist).revokeFamily(id, 'customer-api')],
  ])('includes at most 100 families that %s has ended: a further device deletes the older ones', async (_, end) => {
    const { entity_id, access_token } = await stayOf(service);
    const ids = await addFamilies(entity_id, 120);
    for (const [index, id] of ids.entries()) {
      await dataSource.getRepository(RefreshFamily).update({ id }, { begunAt: new Date(index * 1000) });
      await end(id);
    }
    const second = await stayOf(service, access_token);
    const usable = [access_token, second.access_token].map(familyOf);
    expect((await idsOf(entity_id)).sort()).toEqual([...ids.slice(20), ...usable].sort());
  });

  it('does not count a family whose ancestor has ended, which so displaces no other device', async () => {
    const { entity_id, access_token } = await stayOf(service);
    const [oldest, ...others] = await addFamilies(entity_id, 99);
    const ancestor = claimsOf((await newCustomer(service)).access_token) as { jti: string; exp: number };
    const row = { familyId: others.at(-1) as string, ancestorId: ancestor.jti };
    await dataSource.getRepository(RefreshFamilyAncestor).insert(row);
    await service.application.get(Denylist).revokeToken(ancestor);
    await stayOf(service, access_token);
    expect(await idsOf(entity_id)).toContain(oldest);
    const listed = await service.admin('GET', `/admin/identities/${entity_id}`);
    expect(listed.body.refresh_families.map(({ id }: { id: string }) => id)).not.toContain(row.familyId);
  });

  it('is not reduced by an exchange that fails', async () => {
    const { entity_id, access_token } = await stayOf(service);
    await addFamilies(entity_id, 99);
    const { code } = await moveOf(service, access_token);
    expectInvalidGrant(await stay(service, { code, verifier: 'v'.repeat(43) }));
    expect(await idsOf(entity_id)).toHaveLength(100);
  });

  it('of one root is at most 10, with links by transfer: its own oldest is replaced, without a revocation', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const thief = await redeem(service, await transferToken(service, access_token));
    const ofOthers = [await stayOf(service, access_token), await stayOf(service, access_token)];
    const ofThief = [];
    for (let at = 0; at < 12; at++) ofThief.push(await stayOf(service, thief.body.access_token));
    expect(await idsOf(entity_id)).toHaveLength(10);
    for (const each of [...ofOthers, ...ofThief.slice(-8)])
      expect((await refreshCustomer(service, each.refresh_token)).status).toBe(200);
    for (const each of ofThief.slice(0, 4)) {
      expectInvalidGrant(await refreshCustomer(service, each.refresh_token));
      expect(await infoStatus(service, each.access_token)).toBe(200);
    }
  });

  it('is not raised by a token none of whose devices could be replaced: 429, and the code stays usable', async () => {
    const { access_token } = await newCustomer(service);
    for (let at = 0; at < 10; at++) await stayOf(service, access_token);
    const other = await redeem(service, await transferToken(service, access_token));
    const moved = await moveOf(service, other.body.access_token);
    expectError(await stay(service, moved), { status: 429, error: 'temporarily_unavailable', hint: undefined });
    await service.send('DELETE', '/v2/customer/token', bearer(access_token));
    expectInvalidGrant(await stay(service, moved));
  });
});

describe('protocol §5.8: the statements about a customer with 1,100 refresh families', () => {
  /** The numbers of rows that the statements of a command or request read, change or delete. */
  async function rowCountsOf(act: () => Promise<unknown>): Promise<number[]> {
    const database = service.application.get(Database);
    const counts: number[] = [];
    const select = database.select.bind(database);
    vi.spyOn(database, 'select').mockImplementation(async (...all) => {
      const rows = await select(...all);
      counts.push(rows.length);
      return rows as never;
    });
    const execute = database.execute.bind(database);
    vi.spyOn(database, 'execute').mockImplementation(async (...all) => {
      const changed = await execute(...all);
      counts.push(changed);
      return changed;
    });
    interceptTransactions(service, async (_, send) => {
      const result = (await send()) as QueryResult;
      counts.push(result?.records?.length ?? 0, result?.affected ?? 0);
      return result;
    });
    await act();
    vi.restoreAllMocks();
    return counts;
  }

  it.each<[string, (entityId: string) => Promise<unknown>]>([
    ['the erasure and the purge after it', (entityId) => erase(entityId).then(() => purge(service))],
    [
      'the purge',
      () => {
        service.clock.advance({ seconds: 40 * 86_400 });
        return purge(service);
      },
    ],
  ])('of %s read or delete at most 1,000 rows each', async (_, act) => {
    const { entity_id } = await stayOf(service);
    const ids = await addFamilies(entity_id, 1_100);
    const ancestors = ids.flatMap((familyId) =>
      ['one', 'two', 'three'].map((each) => ({ familyId, ancestorId: each + familyId })),
    );
    const { manager } = service.application.get(DataSource);
    for (let at = 0; at < ancestors.length; at += 200)
      await manager.insert(RefreshFamilyAncestor, ancestors.slice(at, at + 200));
    const counts = await rowCountsOf(() => act(entity_id));
    expect(Math.max(...counts)).toBeGreaterThanOrEqual(500);
    expect(Math.max(...counts)).toBeLessThanOrEqual(1_000);
    expect(await familiesOf(service, entity_id)).toEqual([]);
    expect(await manager.countBy(RefreshFamilyAncestor, { familyId: In(ids) })).toBe(0);
  });
});
