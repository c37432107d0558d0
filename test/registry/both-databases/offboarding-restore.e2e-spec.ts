import { DataSource } from 'typeorm';
import { expect, it, vi } from 'vitest';
import { Offboarding } from '../../../src/operator/registry/offboarding/offboarding.js';
import { read } from '../../support/project-files.js';
import { customersOf, newTenant, runOffboarding, type Tenant } from '../../support/tenants.js';
import { DAY_SECONDS, serviceOfTest, type UsedService, useService } from '../../support/use-service.js';

/** What an operator runs on a restored database before a process starts (docs/operations.md). */
const [, STATEMENT = ''] = /`(UPDATE organization [^`]*)`/.exec(read('docs/operations.md')) ?? [];

const service = useService(() => {
  vi.spyOn(Offboarding.prototype, 'onApplicationBootstrap').mockReturnValue(); // the test carries out what is due itself
  return {};
});
const pathOf = ({ id }: Tenant) => `/admin/organizations/${id}`;

async function requestOffboarding(tenant: Tenant): Promise<void> {
  expect((await service.admin('PATCH', pathOf(tenant), { suspended: true })).status).toBe(200);
  expect((await service.admin('DELETE', pathOf(tenant))).status).toBe(200);
}

const customersLeft = async ({ admin }: UsedService, tenant: Tenant) =>
  (await admin('GET', pathOf(tenant))).body.offboarding?.customers_left;

it('the statement of docs/operations.md stops off-boardings of a restored backup that have not begun, and no other', async () => {
  const [begun, requested] = [await newTenant(service), await newTenant(service)];
  await customersOf(service, begun, 1);
  const [customer] = await customersOf(service, requested, 1);
  await requestOffboarding(begun);
  service.clock.advance({ seconds: DAY_SECONDS + 1 });
  await runOffboarding(service);
  await requestOffboarding(requested);
  await service.application.get(DataSource).query(STATEMENT);
  const restored = await serviceOfTest({ database: service.database });
  restored.clock.advance({ seconds: 3 * DAY_SECONDS });
  await runOffboarding(restored);
  expect(await customersLeft(restored, requested)).toBeUndefined();
  expect((await restored.admin('GET', `/admin/customers/${customer}`)).status).toBe(200);
  expect(await customersLeft(restored, begun)).toBe(0);
});
