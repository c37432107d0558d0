import { IsIn, IsInt, IsString } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import {
  Clock,
  CustomerService,
  defineExtension,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OAuthError,
  Optional,
  UseCounter,
} from '../../../src/public/grant.js';
import { ProofUse } from '../../../src/redemption/proof-use.entity.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectError, expectInvalidGrant } from '../../support/expect-error.js';
import { identitiesOf } from '../../support/identities.js';
import { purge } from '../../support/operator-commands.js';
import { successfulOf, times } from '../../support/races.js';
import { delaySelects } from '../../support/statements.js';
import { ACME, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { everythingIn } from '../../support/transfers.js';
import { serviceOfTest, type UsedService, useService } from '../../support/use-service.js';

const USE_COUNT = 3;
const LIFETIME_SECONDS = 3_600;
const CLOCK_SKEW_SECONDS = 30;

class PassBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @IsString()
  key!: string;

  /** The end of the pass, in seconds from now. Without it, the pass never ends. */
  @Optional()
  @IsInt()
  ends_in?: number;

  @Optional()
  @IsIn(['unavailable', 'limited', 'refused'])
  failure?: 'unavailable' | 'limited' | 'refused';
}

const FAILURES = {
  unavailable: () => OAuthError.unavailable(),
  limited: () => OAuthError.rateLimited(1, 'passes'),
  refused: () => OAuthError.invalidGrant('the seat is taken'),
};

/** A pass names its key and its end, as the issuer of a real one would sign them. */
@GrantType('test_pass', { body: PassBody, uses: USE_COUNT, lifetime: LIFETIME_SECONDS })
class PassGrant implements Grant<PassBody> {
  constructor(
    private readonly uses: UseCounter,
    private readonly customers: CustomerService,
    private readonly clock: Clock,
  ) {}

  async grant(request: GrantRequest<PassBody>): Promise<GrantResult> {
    const { key, ends_in, failure } = request.body;
    const end = ends_in === undefined ? null : new Date(this.clock.now() + ends_in * 1000);
    await this.uses.count(request, key, end);
    if (failure) throw FAILURES[failure]();
    return this.customers.create(request.organization.id);
  }
}

@GrantType('test_eternal_pass', { body: PassBody, uses: USE_COUNT })
class EternalPassGrant extends PassGrant {}

@GrantType('test_uncounted_pass', { body: PassBody, uses: USE_COUNT })
class UncountedPassGrant implements Grant<PassBody> {
  constructor(private readonly customers: CustomerService) {}

  grant = ({ organization }: GrantRequest<PassBody>): Promise<GrantResult> => this.customers.create(organization.id);
}

@GrantType('test_unlimited_pass', { body: PassBody, uses: 'unlimited' })
class UnlimitedPassGrant extends PassGrant {}

const extension = defineExtension({ grants: [PassGrant, EternalPassGrant, UncountedPassGrant, UnlimitedPassGrant] });
const output = new OutputCapture();
const service = useService({ ...extension, log: output.log });

let keys = 0;
const newKey = () => `pass-${keys++}`;
const use = (key: string, more: object = {}, at: UsedService = service): Promise<TestResponse> => {
  const body = { grant_type: 'test_pass', client_id: PUBLIC_SITE, organization_id: ACME, key };
  return at.post(TOKEN, { ...body, ends_in: 600, ...more });
};
const statusesOf = async (count: number, key: string, more: object = {}) => {
  const statuses: number[] = [];
  for (let request = 0; request < count; request++) statuses.push((await use(key, more)).status);
  return statuses;
};

function expectServerError(response: TestResponse, reason: string): void {
  expectError(response, { status: 500, error: 'server_error', hint: undefined });
  expect(output.about(response.headers.get('x-request-id') ?? '').join()).toContain(reason);
}

describe('a proof that UseCounter counts', () => {
  it('gives as many tokens as `uses`, and no further one', async () => {
    const key = newKey();
    expect(await statusesOf(4, key)).toEqual([200, 200, 200, 400]);
    const before = await identitiesOf(service).count();
    expectInvalidGrant(await use(key));
    expect(await identitiesOf(service).count()).toBe(before);
    expect(await statusesOf(1, newKey())).toEqual([200]);
  });

  it('gives as many tokens to 20 requests at once on two processes', async () => {
    const other = await serviceOfTest({ ...extension, database: service.database });
    for (const each of [service, other]) delaySelects(each);
    for (let round = 0; round < 5; round++) {
      const key = newKey();
      const responses = await times(20, (index) => use(key, {}, index % 2 === 0 ? service : other));
      expect(successfulOf(responses)).toHaveLength(USE_COUNT);
      expect(responses.filter(({ status }) => status === 400)).toHaveLength(20 - USE_COUNT);
    }
  });

  it('counts in each organization and for each grant apart', async () => {
    const key = newKey();
    expect(await statusesOf(4, key)).toEqual([200, 200, 200, 400]);
    expect(await statusesOf(4, key, { organization_id: RIVAL })).toEqual([200, 200, 200, 400]);
    expect(await statusesOf(4, key, { grant_type: 'test_eternal_pass' })).toEqual([200, 200, 200, 400]);
  });

  it('gives no token when it has expired', async () => {
    for (const ends_in of [0, -1, -LIFETIME_SECONDS]) expectInvalidGrant(await use(newKey(), { ends_in }));
    expect(await statusesOf(1, newKey(), { ends_in: 60 })).toEqual([200]);
  });

  it('gives no token if it ends later than `lifetime`, apart from 30 s for another clock, or never', async () => {
    const longest = LIFETIME_SECONDS + CLOCK_SKEW_SECONDS;
    expect(await statusesOf(1, newKey(), { ends_in: longest - 5 })).toEqual([200]);
    for (const ends_in of [longest + 5, 10 * LIFETIME_SECONDS, undefined])
      expectInvalidGrant(await use(newKey(), { ends_in }));
    const eternal = { grant_type: 'test_eternal_pass', ends_in: undefined };
    expect(await statusesOf(4, newKey(), eternal)).toEqual([200, 200, 200, 400]);
  });

  it.each<[status: number, failure: string]>([
    [503, 'unavailable'],
    [429, 'limited'],
  ])('has a use again after a response of %i', async (status, failure) => {
    const key = newKey();
    expect(await statusesOf(5, key, { failure })).toEqual(Array(5).fill(status));
    expect(await statusesOf(4, key)).toEqual([200, 200, 200, 400]);
    expect(await statusesOf(1, key, { failure })).toEqual([400]);
  });

  it('has used up a use after an error of the grant that a repetition would get again', async () => {
    const key = newKey();
    expect(await statusesOf(1, key, { failure: 'refused' })).toEqual([400]);
    expect(await statusesOf(3, key)).toEqual([200, 200, 400]);
  });

  it('is stored without its key until 30 s after its end', async () => {
    await service.rowsOf(ProofUse).clear();
    const key = newKey();
    await use(key, { ends_in: 60 });
    expect(await everythingIn(service)).not.toContain(key);
    service.clock.advance({ seconds: 60 + CLOCK_SKEW_SECONDS - 5 });
    expect((await purge(service))?.proof_use).toBe(0);
    service.clock.advance({ seconds: 10 });
    expect((await purge(service))?.proof_use).toBe(1);
  });

  it('is counted until the latest of its ends, if its issuer has renewed it', async () => {
    const key = newKey();
    expect(await statusesOf(1, key, { ends_in: 60 })).toEqual([200]);
    expect(await statusesOf(3, key, { ends_in: 600 })).toEqual([200, 200, 400]);
    service.clock.advance({ seconds: 300 });
    await purge(service);
    expect(await statusesOf(1, key, { ends_in: 300 })).toEqual([400]);
  });

  it('is stored for ever if it never ends', async () => {
    const eternal = { grant_type: 'test_eternal_pass', ends_in: undefined };
    const key = newKey();
    expect(await statusesOf(3, key, eternal)).toEqual([200, 200, 200]);
    service.passDays(10_000);
    await purge(service);
    expectInvalidGrant(await use(key, eternal));
  });

  it('that was renewed to never end is stored for ever', async () => {
    const key = newKey();
    const grant_type = 'test_eternal_pass';
    for (const ends_in of [60, undefined, 60]) expect(await statusesOf(1, key, { grant_type, ends_in })).toEqual([200]);
    service.clock.advance({ seconds: 300 });
    await purge(service);
    expect(await statusesOf(1, key, { grant_type, ends_in: undefined })).toEqual([400]);
  });
});

describe('a grant that declares `uses`', () => {
  it('gets 500 if it does not count, and the log says what to do', async () => {
    const response = await use(newKey(), { grant_type: 'test_uncounted_pass' });
    expectServerError(response, 'test_uncounted_pass: declares `uses`; call `UseCounter.count`');
  });

  it('gets 500 if it counts uses that are unlimited, and the log says what to do', async () => {
    const response = await use(newKey(), { grant_type: 'test_unlimited_pass' });
    expectServerError(response, 'test_unlimited_pass: UseCounter needs a number as `uses` in @GrantType');
  });
});
