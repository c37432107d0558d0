import { DataSource, type Repository } from 'typeorm';
import { expect } from 'vitest';
import { BrowserLink, KnownBrowser } from '../../src/identity/browser-link.entity.js';
import { CustomerIdentity } from '../../src/identity/customer-identity.entity.js';
import { partsOf } from '../../src/identity/identity-cookies.js';
import { expectError, MALFORMED } from './expect-error.js';
import type { TestResponse, TestService } from './test-service.js';

/** The customers in the database of a service. */
export function identitiesOf({ application }: TestService): Repository<CustomerIdentity> {
  return application.get(DataSource).getRepository(CustomerIdentity);
}

/** Checks that a request gets an error with a hint that names the parameter, and creates no customer. */
export async function expectNoCustomerCreated(
  service: TestService,
  send: () => Promise<TestResponse>,
  parameter: string,
  error = 'invalid_request',
  description: string | undefined = error === 'invalid_request' ? MALFORMED : undefined,
): Promise<TestResponse> {
  const before = await identitiesOf(service).count();
  const response = await send();
  const hint = new RegExp(`^${parameter}: `);
  expectError(response, { status: 400, error, hint, ...(description && { description }) });
  expect(await identitiesOf(service).count()).toBe(before);
  return response;
}

/** The links of the browser that got a response, ended ones too. */
export async function linksOfBrowser({ application }: TestService, response: TestResponse): Promise<BrowserLink[]> {
  const links = application.get(DataSource).getRepository(BrowserLink);
  return links.findBy({ browserId: partsOf(secretOf(response)).browserId });
}

/** The browser that got a response. */
export function browserOf({ application }: TestService, response: TestResponse): Promise<KnownBrowser> {
  const browsers = application.get(DataSource).getRepository(KnownBrowser);
  return browsers.findOneByOrFail({ browserId: partsOf(secretOf(response)).browserId });
}

/** Checks that each row about a customer or browser belongs to one, and that none of an erased customer remains. */
export async function expectNoOrphans({ application }: TestService): Promise<void> {
  const none = async (rows: string) =>
    expect(await application.get(DataSource).query(`SELECT * FROM ${rows}`)).toEqual([]);
  const ofCustomer = (row: string) =>
    `SELECT 1 FROM customer WHERE customer.entity_id = ${row} AND customer.erased_at IS NULL`;
  await none(
    `browser_customer link WHERE organization_id IS NOT NULL AND NOT EXISTS (${ofCustomer('link.entity_id')})`,
  );
  await none(`browser_customer link WHERE NOT EXISTS (SELECT 1 FROM browser
    WHERE browser.browser_id = link.browser_id AND (browser.secret_hash <> '' OR link.organization_id IS NULL))`);
  await none(`link_ancestor ancestor WHERE NOT EXISTS (SELECT 1 FROM browser_customer link
    WHERE link.browser_id = ancestor.browser_id AND link.entity_id = ancestor.entity_id AND link.lineage IS NOT NULL)`);
  await none(`organization_user user_row WHERE NOT EXISTS (${ofCustomer('user_row.customer_id')})`);
  await none(
    `refresh_family family WHERE customer_id IS NOT NULL AND NOT EXISTS (${ofCustomer('family.customer_id')})`,
  );
  await none(`refresh_family_ancestor ancestor WHERE NOT EXISTS (SELECT 1 FROM refresh_family family
    WHERE family.id = ancestor.family_id)`);
  await none('unfinished_erasure');
}

/** The value of the cookie in a `Set-Cookie` line. */
export function cookieValue(line = ''): string {
  return line.split(';')[0]?.split('=')[1] as string;
}

/** The secret of the browser in a response of the cookie grant. */
export function secretOf({ cookies }: TestResponse): string {
  return cookieValue(cookies[1]);
}
