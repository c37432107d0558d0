import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import extension from '../../../examples/device-approval/src/index.js';
import { clickIn, customerIn, tryItSite } from '../../../packages/try-it/test/support/try-it-page.js';
import { expectAccessible } from '../../support/accessibility.js';

const NEW_DEVICE = '/try/device-approval';

const site = tryItSite(extension, {
  title: 'Approve a new device',
  path: NEW_DEVICE,
  grantTypes: ['device_approval'],
});

const result = (page: Page) => page.locator('#result p');

/** Shows a code on the new device, and opens its link on the signed-in device. */
async function showCode(device: Page, signedIn: Page): Promise<void> {
  await device.getByRole('button', { name: 'Show a code' }).click();
  await device.locator('#qr svg').waitFor();
  const [code, link] = [await device.locator('#code').innerText(), await device.locator('#link').innerText()];
  await signedIn.goto(link);
  expect(await signedIn.getByLabel('Code of the new device').inputValue()).toBe(code.replace('-', ''));
  expect(signedIn.url()).not.toContain('user_code');
}

describe('the pages of the example that approves a new device', () => {
  it('are linked from the try-it page, and make the new device the customer that approved it', async () => {
    const signedIn = await site.current.open();
    const customer = customerIn(await clickIn(signedIn, 'new', 'Get a token'));
    expect(await signedIn.getByRole('link', { name: 'Approve a new device' }).getAttribute('href')).toBe(NEW_DEVICE);
    const device = await site.current.open(NEW_DEVICE);
    await showCode(device, signedIn);
    await signedIn.getByRole('button', { name: 'Approve' }).click();
    await result(signedIn).getByText('The new device gets a token for this customer.').waitFor();
    await result(device).getByText(`Approved: this device is customer ${customer}.`).waitFor();
  });

  it('show the new device that the customer denied it', async () => {
    const [device, signedIn] = [await site.current.open(NEW_DEVICE), await site.current.open()];
    await showCode(device, signedIn);
    await signedIn.getByRole('button', { name: 'Deny' }).click();
    await result(device).getByText('The other device denied the request.').waitFor();
  });

  it('have no violation that axe finds, and no horizontal scroll bar', async () => {
    const [device, signedIn] = [await site.current.open(NEW_DEVICE), await site.current.open('/try')];
    await showCode(device, signedIn);
    await result(device).waitFor();
    await expectAccessible(device, 'new device');
    await expectAccessible(signedIn, 'signed-in device');
  });
});
