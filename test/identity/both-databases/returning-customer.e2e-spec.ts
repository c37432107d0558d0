import { describe, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { expectKeysOnly } from '../../support/statement-plans.js';
import { useService } from '../../support/use-service.js';

const service = useService({ registry: rememberingRegistry() });

describe('protocol §5.3: a returning customer', () => {
  it.runIf(onMariadb)('is read by keys only, also in a batch and by a link from a transfer', async () => {
    const browser = new TestBrowser(service);
    const { access_token } = (await browser.visit()).body;
    const device = new TestBrowser(service);
    device.cookie = await rememberedPair(service, access_token);
    await expectKeysOnly(service, browser);
    await expectKeysOnly(service, device);
  });
});
