import { DataSource, type Repository } from 'typeorm';
import { expect } from 'vitest';
import { CustomerEntity } from '../../src/customer/customer.entity.js';
import { Browser } from '../../src/session/browser.entity.js';
import { Session } from '../../src/session/session.entity.js';
import { expectError, MALFORMED } from './expect-error.js';
import type { TestResponse, TestService } from './test-service.js';

/** The customers in the database of a service. */
export function identitiesOf({ application }: TestService): Repository<CustomerEntity> {
  return application.get(DataSource).getRepository(CustomerEntity);
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

/** The sessions of the browser that got a response, expired ones too. */
export async function sessionsOfBrowser({ application }: TestService, response: TestResponse): Promise<Session[]> {
  const sessions = application.get(DataSource).getRepository(Session);
  return sessions.findBy({ browserId: browserIdOf(secretOf(response)) });
}

/** The browser that got a response. */
export function browserOf({ application }: TestService, response: TestResponse): Promise<Browser> {
  const browsers = application.get(DataSource).getRepository(Browser);
  return browsers.findOneByOrFail({ browserId: browserIdOf(secretOf(response)) });
}

/** The id of the browser with which the value of the cookie with the secret begins. */
export function browserIdOf(secret: string): string {
  return secret.slice(0, 32).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Checks that each browser has a session, and that nothing remains of an erased customer. */
export async function expectNoOrphans({ application }: TestService): Promise<void> {
  const none = async (rows: string) =>
    expect(await application.get(DataSource).query(`SELECT * FROM ${rows}`)).toEqual([]);
  await none('customer WHERE erased_at IS NOT NULL');
  await none('browser WHERE NOT EXISTS (SELECT 1 FROM session WHERE session.browser_id = browser.browser_id)');
  await none(`session WHERE NOT EXISTS (SELECT 1 FROM customer WHERE customer.entity_id = session.customer_id)`);
  await none(
    `customer_key WHERE NOT EXISTS (SELECT 1 FROM customer WHERE customer.entity_id = customer_key.entity_id)`,
  );
}

/** The value of the cookie in a `Set-Cookie` line. */
export function cookieValue(line = ''): string {
  return line.split(';')[0]?.split('=')[1] as string;
}

/** The secret of the browser in a response of the cookie grant. */
export function secretOf({ cookies }: TestResponse): string {
  return cookieValue(cookies[1]);
}

/** The id and the secret of the browser in a response, without the part that ties them to one customer. */
export function browserPartOf(response: TestResponse): string {
  return secretOf(response).slice(0, 96);
}
