import { startTestService, type TestService, testEnvironmentOf } from '@customer-authorization/conformance-kit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import extension from '../src/index.js';
import { codeFor, GATEWAY } from './gateway-of-tests.js';
import { newPhone } from './new-phone.js';

const ROUTE = '/v2/customer/phone_code';
/** Long enough for a machine with other work. */
const SLOW_MS = 120_000;
const REJECTED = { status: 400, body: { error: 'invalid_grant' } };

describe(`a code of POST ${ROUTE}`, { timeout: SLOW_MS }, () => {
  let service: TestService;
  beforeAll(async () => {
    const environment = { RATE_LIMIT: 'phone_code_phone=3/900' };
    service = await startTestService({ ...extension, upstream: GATEWAY, environment });
  }, SLOW_MS);
  afterAll(() => service?.stop());

  const client = () => {
    const { clientId, organizationId } = testEnvironmentOf(service);
    return { client_id: clientId, organization_id: organizationId };
  };
  const start = (phone: string) => service.post(ROUTE, { ...client(), phone });
  const redeem = (phone: string, code: string) =>
    service.post('/v2/customer/token', { grant_type: 'phone_code', ...client(), phone, code });
  const wrong = (code: string, add: number) => String((Number(code) + add) % 1_000_000).padStart(6, '0');

  it('gets one token, and the next code for the same phone leads to the same customer', async () => {
    const phone = newPhone();
    expect(await start(phone)).toMatchObject({ status: 200, body: { expires_in: 600 } });
    const { status, body } = await redeem(phone, codeFor(phone));
    expect(status).toBe(200);
    expect(await redeem(phone, codeFor(phone))).toMatchObject(REJECTED);
    await start(phone);
    expect(await redeem(phone, codeFor(phone))).toMatchObject({ status: 200, body: { entity_id: body.entity_id } });
  });

  it('that is sent again replaces the earlier one, and keeps the number of guesses', async () => {
    const phone = newPhone();
    await start(phone);
    const earlier = codeFor(phone);
    await start(phone);
    if (earlier !== codeFor(phone)) expect(await redeem(phone, earlier)).toMatchObject(REJECTED);
    for (let guess = 1; guess <= 4; guess++) await redeem(phone, wrong(codeFor(phone), guess));
    await start(phone);
    await redeem(phone, wrong(codeFor(phone), 1));
    expect(await redeem(phone, codeFor(phone))).toMatchObject(REJECTED);
  });

  it('is sent three times in 15 minutes to the same phone', async () => {
    const phone = newPhone();
    service.clock.advance({ seconds: 900 - (service.clock.seconds() % 900) }); // the start of a window
    for (let message = 1; message <= 3; message++) expect((await start(phone)).status).toBe(200);
    expect((await start(phone)).status).toBe(429);
    service.clock.advance({ seconds: 900 });
    expect((await start(phone)).status).toBe(200);
  });
});
