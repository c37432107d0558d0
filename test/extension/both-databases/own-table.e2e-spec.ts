import { beforeAll, describe, expect, it } from 'vitest';
import { bearer } from '../../support/authorization-headers.js';
import { Bookmark, bookmarkExtension } from '../../support/bookmark-extension.js';
import { newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const BOOKMARKS = '/v2/customer/bookmarks';

describe('an extension with a table of its own', () => {
  const service = useService({ ...bookmarkExtension });
  let headers: Record<string, string>;
  let entityId: string;
  let other: Record<string, string>;
  beforeAll(async () => {
    const [customer, otherCustomer] = [await newCustomer(service), await newCustomer(service)];
    [headers, other] = [bearer(customer.access_token), bearer(otherCustomer.access_token)];
    entityId = customer.entity_id;
  });
  const add = async (title: string) => (await service.post(BOOKMARKS, { title }, headers)).body;
  const list = async (query = '', ofCaller = headers) =>
    (await service.send('GET', `${BOOKMARKS}${query}`, ofCaller)).body.bookmarks;

  it('lists the rows of the customer in pages, and none of another customer', async () => {
    const rows = service.rowsOf(Bookmark);
    const ids = Array.from(
      { length: 150 },
      (_, number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`,
    );
    await rows.insert(ids.map((id) => ({ id, entityId, title: 'x' })));
    const first = await list();
    expect(first).toHaveLength(100);
    expect(await list(`?after=${first.at(-1).id}`)).toHaveLength(50);
    expect(await list('', other)).toEqual([]);
    await rows.clear();
  });

  it('deletes a row of the customer by the id in the path with 204, and none of another customer', async () => {
    const { id } = await add('one');
    for (const caller of [other, headers]) {
      const { status, text } = await service.send('DELETE', `${BOOKMARKS}/${id}`, caller);
      expect([status, text]).toEqual([204, '']);
      expect(await list()).toHaveLength(caller === other ? 1 : 0);
    }
    expect((await service.send('DELETE', `${BOOKMARKS}/x`, headers)).status).toBe(400);
  });

  it('exports the rows of a customer, and erases them with it', async () => {
    await add('two');
    const { body } = await service.admin('GET', `/admin/customers/${entityId}/export`);
    expect(body.tables.bookmark).toEqual([expect.objectContaining({ title: 'two' })]);
    await service.erase(entityId);
    expect(await service.rowsOf(Bookmark).count()).toBe(0);
  });
});
