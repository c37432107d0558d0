import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cookieBody, TOKEN } from '../../../../test/support/cookie-grant.js';
import { CustomerBrowser } from '../../../../test/support/customer-browser.js';
import { scriptOf } from '../../../../test/support/guide-site.js';
import { type HttpsProxy, startHttpsProxy } from '../../../../test/support/https-proxy.js';
import { rememberingRegistry } from '../../../../test/support/remember.js';
import { ACME, ACME_PAGE, ACME_SITE } from '../../../../test/support/test-registry.js';
import { useService } from '../../../../test/support/use-service.js';

const OPTIONS = JSON.stringify({ url: 'https://auth.example', clientId: ACME_SITE, organizationId: ACME });

const service = useService({ registry: rememberingRegistry() });
let front: HttpsProxy;
const browsers: CustomerBrowser[] = [];
beforeAll(async () => {
  front = await startHttpsProxy('auth.example', service.url, {}, scriptOf);
});
afterEach(async () => {
  for (const browser of browsers.splice(0)) await browser.close();
});
afterAll(async () => {
  await front?.stop();
});

/** A device. `run` evaluates an expression in a new tab, because a camera app opens links in new tabs. */
async function openDevice() {
  const browser = await CustomerBrowser.open({ httpsPort: front.port });
  browsers.push(browser);
  const visit = async () =>
    (await browser.ask(ACME_PAGE, cookieBody({ redirect_uri: ACME_PAGE }))).body as Record<string, string>;
  const run = async <Result>(expression: string, tab?: Page): Promise<Result> => {
    const page = tab ?? (await browser.goTo(ACME_PAGE));
    return page.evaluate(`(async () => {
      const { approveMove, NewBrowser, TokenClient } = await import('${ACME_PAGE}browser-client/index.js');
      const tokens = new TokenClient(${OPTIONS});
      const device = new NewBrowser(tokens);
      return ${expression};
    })()`);
  };
  return { visit, run, openTab: () => browser.goTo(ACME_PAGE) };
}

type Device = Awaited<ReturnType<typeof openDevice>>;

/** Steps 1 to 3. Returns the call of step 4. */
async function approve(from: Device, to: Device) {
  const challenge = await to.run<string>('device.beginMove()');
  const approval = `approveMove(tokens, '${ACME_SITE}', '${challenge}')`;
  const { transferToken } = await from.run<{ transferToken: string }>(approval);
  return (options = '{}') => `device.finishMove('${transferToken}', ${options})`;
}

/** The fields of the error with which an expression rejects. */
const errorOf = (expression: string) => `${expression}.then(() => undefined, ({ ...fields }) => fields)`;

describe('NewBrowser and approveMove on pages of another site', () => {
  it('move a customer to a second browser, where it stays', async () => {
    const [phone, laptop] = [await openDevice(), await openDevice()];
    const { entity_id } = await phone.visit();
    const finish = await approve(phone, laptop);
    expect(await laptop.run(finish())).toMatchObject({ entity_id });
    expect(await laptop.visit()).toMatchObject({ entity_id });
    expect(await phone.visit()).toMatchObject({ entity_id });
  });

  it('reject in a browser that has not begun the move', async () => {
    const laptop = await openDevice();
    const error = await laptop.run(errorOf("device.finishMove('dev:any')"));
    expect(error).toMatchObject({ error: 'move_not_begun' });
  });

  it('replace the customer of the second browser only if its user agrees', async () => {
    const [phone, laptop] = [await openDevice(), await openDevice()];
    const { entity_id } = await phone.visit();
    const known = await laptop.visit();
    const finish = await approve(phone, laptop);
    expect(await laptop.run(errorOf(finish()))).toMatchObject({ status: 409, error: 'identity_conflict' });
    expect(await laptop.visit()).toMatchObject({ entity_id: known.entity_id });
    const replace = `tokens.get().then(() => ${finish('{ replace: true }')}).then(() => tokens.entityId())`;
    expect(await laptop.run(replace)).toBe(entity_id);
    expect(await laptop.visit()).toMatchObject({ entity_id });
  });

  it('send one exchange if the page reloads before the response, and can move the customer again', async () => {
    const [phone, laptop] = [await openDevice(), await openDevice()];
    const { entity_id } = await phone.visit();
    const finish = await approve(phone, laptop);
    const tab = await laptop.openTab();
    const status = front.loseResponse(TOKEN);
    laptop.run(finish(), tab).catch(() => undefined); // ends with the reload
    expect(await status).toBe(200);
    await tab.reload();
    const sent = front.seen.length;
    expect(await laptop.run(errorOf(finish()), tab)).toMatchObject({ error: 'move_not_begun' });
    expect(front.seen.length).toBe(sent);
    expect(await laptop.run((await approve(phone, laptop))())).toMatchObject({ entity_id });
  });
});
