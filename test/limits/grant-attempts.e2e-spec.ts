import type { Type } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OAuthError,
} from '../../src/public/grant.js';
import { TOKEN } from '../support/cookie-grant.js';
import { deferred } from '../support/deferred.js';
import { expectError, expectInvalidGrant, expectLimited } from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { metricOf } from '../support/management-api.js';
import { ACME, ACME_SITE } from '../support/test-registry.js';
import { serviceOfTest, useService } from '../support/use-service.js';

class SmsBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @Matches(/^\+[1-9]\d{5,14}$/)
  phone!: string;

  @IsString()
  code!: string;
}

let runs = 0;
/** Requests wait here while the gate is closed, so that they run at the same time. */
let gate: Promise<void> | undefined;

@GrantType('sms', {
  body: SmsBody,
  attempts: [
    { per: ['network', 'phone'], limit: '5/600' },
    { per: ['phone'], limit: '8/600' },
  ],
})
class SmsGrant implements Grant<SmsBody> {
  constructor(private readonly customers: CustomerService) {}

  async grant({ body, organization, network }: GrantRequest<SmsBody>): Promise<GrantResult> {
    runs++;
    await gate;
    if (body.code === 'outage') throw OAuthError.unavailable();
    if (body.code === 'network') throw OAuthError.invalidRequest(`network: ${network}`);
    if (body.code !== 'right') throw OAuthError.invalidGrant('a wrong code');
    return this.customers.create(organization.id);
  }
}

class AnyTextBody extends SmsBody {
  @IsString()
  override phone!: string;
}

@GrantType('any_text', { body: AnyTextBody, attempts: { per: ['phone'], limit: '5/600' } })
class AnyTextGrant extends SmsGrant {}

const extension = defineExtension({ grants: [SmsGrant, AnyTextGrant] });

@GrantType('few', { body: SmsBody, attempts: { per: ['phone'], limit: '0/0' } })
class MalformedLimitGrant extends SmsGrant {}

// @ts-expect-error: no parameter of the body
@GrantType('mobile', { body: SmsBody, attempts: { per: ['mobile'], limit: '1/1' } })
class MisspeltGrant extends SmsGrant {}

describe('the limit of refused requests that a grant declares', () => {
  const environment = { RATE_LIMIT: 'tokens=60000/60', TRUST_PROXY: '1' };
  const service = useService({ ...extension, environment });
  let phones = 0;
  let phone: string;
  beforeEach(() => {
    beginWindow(service);
    gate = undefined;
    runs = 0;
    phone = `+49${100_000 + phones++}`;
  });

  const guess = (code: string, ip = '203.0.113.7', grant_type = 'sms') =>
    service.post(
      TOKEN,
      { grant_type, client_id: ACME_SITE, organization_id: ACME, phone, code },
      { 'x-forwarded-for': ip },
    );
  const guesses = (count: number, code: string, ip?: string) =>
    Promise.all(Array.from({ length: count }, () => guess(code, ip)));

  it('responds 429 with Retry-After before the grant runs, also to a right proof', async () => {
    for (let i = 0; i < 5; i++) expectInvalidGrant(await guess('wrong'));
    const response = await guess('right');
    expectLimited(response, 600);
    expect(runs).toBe(5);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="attempts"}')).toBe(1);
    service.clock.advance({ seconds: 600 });
    expect((await guess('right')).status).toBe(200);
  });

  it('gives 50 parallel guesses no more attempts than the limit', async () => {
    const responses = await guesses(50, 'wrong');
    expect(responses.filter(({ status }) => status === 400)).toHaveLength(5);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(45);
    expect(runs).toBe(5);
  });

  it('rejects a parallel request beyond the limit at once, and does not count a request with a right proof', async () => {
    const opened = deferred();
    gate = opened.promise;
    const admitted = guesses(5, 'right');
    await expect.poll(() => runs).toBe(5);
    expectLimited(await guess('right'), 600);
    opened.resolve();
    expect((await admitted).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    for (let i = 0; i < 5; i++) expectInvalidGrant(await guess('wrong'));
    expectLimited(await guess('right'), 600);
  });

  it('counts each network and phone together, and each phone over all networks', async () => {
    await guesses(5, 'wrong');
    expect((await guess('wrong')).status).toBe(429);
    const fromOther = [];
    for (let i = 0; i < 4; i++) fromOther.push((await guess('wrong', `198.51.100.${i}`)).status);
    expect(fromOther).toEqual([400, 400, 400, 429]);
    phone = `${phone}9`;
    expect((await guess('wrong')).status).toBe(400);
  });

  it('does not count a request that ends with a status of 500 or more', async () => {
    for (let i = 0; i < 6; i++)
      expectError(await guess('outage'), { status: 503, error: 'temporarily_unavailable', hint: undefined });
    expect((await guess('right')).status).toBe(200);
  });

  it('counts values that differ only in the spaces at their end together, as MariaDB compares them', async () => {
    const statuses: number[] = [];
    for (const spaces of ['', ' ', '  ', ' '.repeat(17), ' '.repeat(300), '   ']) {
      phone = `${phone.trimEnd()}${spaces}`;
      statuses.push((await guess('wrong', undefined, 'any_text')).status);
    }
    expect(statuses).toEqual([400, 400, 400, 400, 400, 429]);
    phone = ` ${phone}`;
    expect((await guess('wrong', undefined, 'any_text')).status).toBe(400);
  });

  it('applies with RATE_LIMIT=off, which concerns the other limits', async () => {
    const unlimited = await serviceOfTest({ ...extension, environment: { RATE_LIMIT: 'off' } });
    beginWindow(unlimited);
    const body = { grant_type: 'sms', client_id: ACME_SITE, organization_id: ACME, phone, code: 'wrong' };
    const statuses: number[] = [];
    for (let i = 0; i < 6; i++) statuses.push((await unlimited.post(TOKEN, body)).status);
    expect(statuses).toEqual([400, 400, 400, 400, 400, 429]);
  });

  it('gives the grant the network of the caller', async () => {
    const hints = [];
    for (const ip of ['2001:db8:1:2::1', '2001:db8:1:2::99', '2001:db8:1:3::1'])
      hints.push((await guess('network', ip)).body.error_hint);
    expect(hints[0]).toBe(hints[1]);
    expect(hints[0]).not.toBe(hints[2]);
  });

  it.each<[Type, string]>([
    [MalformedLimitGrant, 'MalformedLimitGrant: attempts: the limit must be COUNT/SECONDS, for example 5/600'],
    [MisspeltGrant, 'MisspeltGrant: attempts: "mobile" is not a parameter of SmsBody'],
  ])('stops the start: %o', async (grant, message) => {
    await expect(serviceOfTest(defineExtension({ grants: [grant] }))).rejects.toThrow(message);
  });
});
