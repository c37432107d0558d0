import { Get, Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { ApiRoute, type LimitDeclarations, Limits, OAuthError, PublicController } from '../../src/public/grant.js';
import { expectError, expectLimited } from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { metricOf } from '../support/management-api.js';
import type { TestService } from '../support/test-service.js';
import { serviceOfTest } from '../support/use-service.js';

const DECLARED = { qr_guess: '2/60', qr_start: '2/60' } as const satisfies LimitDeclarations;

@PublicController('guesses')
class GuessController {
  constructor(private readonly limits: Limits<typeof DECLARED & { undeclared: '1/1' }>) {}

  @Get('one')
  @ApiRoute({ summary: 'Guess for one key', errors: ['429 temporarily_unavailable'] })
  one(): object {
    this.limits.take('qr_guess', 'one');
    return {};
  }

  @Get('other')
  @ApiRoute({ summary: 'Guess for a long key', errors: ['429 temporarily_unavailable'] })
  other(): object {
    this.limits.take('qr_guess', 'x'.repeat(100_000));
    return {};
  }

  @Get('padded')
  @ApiRoute({ summary: 'Guess for a key with spaces at its end', errors: ['429 temporarily_unavailable'] })
  padded(): object {
    this.limits.take('qr_guess', 'one   ');
    return {};
  }

  @Get('network')
  @ApiRoute({ summary: 'Start', errors: ['429 temporarily_unavailable'] })
  network(): object {
    this.limits.takeForNetwork('qr_start');
    return {};
  }

  @Get('outage')
  @ApiRoute({ summary: 'Guess while another system is unavailable', errors: ['429 temporarily_unavailable'] })
  outage(): object {
    const [guess, start] = [this.limits.take('qr_guess', 'one'), this.limits.takeForNetwork('qr_start')];
    for (const taken of [guess, guess, start]) taken.giveBack();
    throw OAuthError.unavailable(new Error('another system is unavailable'), 7);
  }

  @Get('undeclared')
  @ApiRoute({ summary: 'Use a limit without a declaration' })
  undeclared(): object {
    this.limits.take('undeclared', 'key');
    return {};
  }

  /** Each of these calls does not compile. */
  wrong(): void {
    // @ts-expect-error: not declared
    this.limits.take('other', 'key');
    // @ts-expect-error: a limit of the service
    this.limits.take('tokens', 'key');
  }
}

@Module({ controllers: [GuessController] })
class GuessModule {}

describe('the limits of an extension', () => {
  async function start(RATE_LIMIT: string, environment = {}, limits: LimitDeclarations = DECLARED) {
    const service = await serviceOfTest({
      modules: [GuessModule],
      limits,
      environment: { RATE_LIMIT, TRUST_PROXY: '1', ...environment },
    });
    beginWindow(service);
    return service;
  }
  const limitsOf = ({ application }: TestService) =>
    application.get<Limits<typeof DECLARED>>(Limits, { strict: false });
  const get = (service: TestService, path: string, ip = '203.0.113.7') =>
    service.send('GET', `/guesses/${path}`, { 'x-forwarded-for': ip });
  const statuses = async (service: TestService, ...paths: string[]) => {
    const found: number[] = [];
    for (const path of paths) found.push((await get(service, path)).status);
    return found;
  };
  const DEFAULTS = 'tokens=60000/60';

  it('responds 429 with Retry-After beyond the limit, counts in the metric, and counts each key alone', async () => {
    const service = await start(DEFAULTS);
    expect(await statuses(service, 'one', 'one', 'other', 'other')).toEqual([200, 200, 200, 200]);
    expectLimited(await get(service, 'one'));
    expect((await get(service, 'other')).status).toBe(429);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="qr_guess"}')).toBe(2);
    expect(await metricOf(service, 'cas_rate_limited_total{limit="qr_start"}')).toBe(0);
    service.clock.advance({ seconds: 60 });
    expect((await get(service, 'one')).status).toBe(200);
  });

  it('counts each network alone, and an IPv6 /48 32 times', async () => {
    const service = await start(DEFAULTS);
    const statusFrom = async (ip: string) => (await get(service, 'network', ip)).status;
    for (const status of [200, 200, 429]) expect(await statusFrom('203.0.113.7')).toBe(status);
    const all: number[] = [];
    for (let net = 0; net < 65; net++) all.push(await statusFrom(`2001:db8:1:${net}00::1`));
    expect(all).toEqual([...Array(64).fill(200), 429]);
  });

  it('counts keys that differ only in the spaces at their end together', async () => {
    expect(await statuses(await start(DEFAULTS), 'one', 'padded', 'padded')).toEqual([200, 200, 429]);
  });

  it('can be changed in RATE_LIMIT, and is off with RATE_LIMIT=off', async () => {
    const changed = await start('qr_guess=1/60');
    expect(await statuses(changed, 'one', 'one', 'network', 'network')).toEqual([200, 429, 200, 200]);
    const off = await start('off');
    expect(await statuses(off, 'one', 'one', 'one', 'one')).toEqual([200, 200, 200, 200]);
  });

  it('does not count a request that a route gave back, and gives it back only once', async () => {
    const service = await start(DEFAULTS);
    expect(await statuses(service, 'outage', 'outage')).toEqual([503, 503]);
    const { status, headers } = await get(service, 'outage');
    expect([status, headers.get('retry-after')]).toEqual([503, '7']);
    expect(await statuses(service, 'one', 'outage', 'one', 'one')).toEqual([200, 503, 200, 429]);
    expect(await statuses(service, 'network', 'network', 'network')).toEqual([200, 200, 429]);
  });

  it('gives nothing back in the window after that of the request', async () => {
    const service = await start(DEFAULTS);
    const taken = limitsOf(service).take('qr_guess', 'one');
    service.clock.advance({ seconds: 60 });
    expect(await statuses(service, 'one')).toEqual([200]);
    taken.giveBack();
    expect(await statuses(service, 'one', 'one')).toEqual([200, 429]);
  });

  it('counts what was given back in a window also after a request of an earlier window is given back', async () => {
    const service = await start('qr_guess=1/60');
    const early = limitsOf(service).take('qr_guess', 'one');
    service.clock.advance({ seconds: 60 });
    limitsOf(service).take('qr_guess', 'one').giveBack();
    early.giveBack();
    expect(await statuses(service, 'one', 'one')).toEqual([200, 429]);
  });

  it('responds 500 to a limit that the extension does not declare', async () => {
    const response = await get(await start(DEFAULTS), 'undeclared');
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
  });

  it.each<[object, string, string]>([
    [{ tokens: '1/1' }, DEFAULTS, 'limits.tokens: is a limit of the service; rename yours'],
    [{ attempts: '1/1' }, DEFAULTS, 'limits.attempts: is a limit of the service; rename yours'],
    [{ 'QR!': '1/1' }, DEFAULTS, 'limits.QR!: must be a name in snake_case; rename it'],
    [{ qr_guess: '0/0' }, DEFAULTS, 'limits.qr_guess: must be COUNT/SECONDS, for example 30/300'],
    [{ qr_guess: '30 in 300' }, 'off', 'limits.qr_guess: must be COUNT/SECONDS, for example 30/300'],
    [DECLARED, 'qr_other=1/1', 'RATE_LIMIT: qr_other: no limit has this name'],
  ])('stops the start: %j with RATE_LIMIT=%s', async (limits, RATE_LIMIT, message) => {
    await expect(start(RATE_LIMIT, {}, limits as LimitDeclarations)).rejects.toThrow(message);
  });
});
