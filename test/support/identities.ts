import { DataSource, type Repository } from 'typeorm';
import { expect } from 'vitest';
import { BrowserLink } from '../../src/identity/browser-link.entity.js';
import { CustomerIdentity } from '../../src/identity/customer-identity.entity.js';
import { partsOf } from '../../src/identity/identity-cookies.js';
import { KnownBrowser } from '../../src/identity/known-browser.entity.js';
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

/** `name=value` of a `Set-Cookie` line. */
export function pairOf(line = ''): string {
  return line.split(';')[0] as string;
}

export function cookieValue(line = ''): string {
  return pairOf(line).split('=')[1] as string;
}

/** The secret of the browser in a response of the cookie grant. */
export function secretOf({ cookies }: TestResponse): string {
  return cookieValue(cookies[1]);
}
