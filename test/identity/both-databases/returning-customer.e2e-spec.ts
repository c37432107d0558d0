import { describe, expect, it } from 'vitest';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { TestBrowser } from '../../support/cookie-grant.js';
import { rememberedPair, rememberingRegistry } from '../../support/remember.js';
import { expectKeysOnly } from '../../support/statement-plans.js';
import { statementsOf } from '../../support/statements.js';
import { DAY_SECONDS, useService } from '../../support/use-service.js';

const service = useService({ registry: rememberingRegistry() });

describe('protocol §5.3: a returning customer', () => {
  it('costs one SELECT and no write, and the first call of a day one UPDATE more', async () => {
    const browser = new TestBrowser(service);
    await browser.visit();
    const visit = () => statementsOf(service, () => browser.visit());
    expect(await visit()).toEqual(['SELECT']);
    service.clock.advance({ seconds: DAY_SECONDS });
    expect(await visit()).toEqual(['SELECT', 'UPDATE']);
    expect(await visit()).toEqual(['SELECT']);
  });

  it.runIf(onMariadb)('is read by keys only, also in a batch and by a link from a transfer', async () => {
    const browser = new TestBrowser(service);
    const { access_token } = (await browser.visit()).body;
    const device = new TestBrowser(service);
    device.cookie = await rememberedPair(service, access_token);
    await expectKeysOnly(service, browser);
    await expectKeysOnly(service, device);
  });
});
