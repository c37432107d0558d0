import { TestBrowser } from './cookie-grant.js';
import type { TestService } from './test-service.js';

/** Stands for the token client of a page whose browser has one customer. `url` is that of the service of the page. */
export function pageTokens(service: TestService, url = service.url) {
  const browser = new TestBrowser(service);
  const requestToken = async () => (await browser.visit()).body as { access_token: string; entity_id: string };
  return { url, requestToken, get: async () => (await requestToken()).access_token };
}
