import { Get, Module } from '@nestjs/common';
import { afterEach, describe, expect, it } from 'vitest';
import { ApiRoute, type LimitDeclarations, Limits, OAuthError, PublicController } from '../../src/public/grant.js';
import { beginWindow, untilConnected, untilExchanged, useLongRedisTimeouts } from '../support/limit-windows.js';
import { REDIS_SERVER, TestRedis } from '../support/redis-server.js';
import { startTestService, type TestService } from '../support/test-service.js';

const LIMITS = { sms_phone: '2/60', sms_network: '2/60' } as const satisfies LimitDeclarations;

@PublicController('messages')
class MessageController {
  constructor(private readonly limits: Limits<typeof LIMITS>) {}

  @Get('phone')
  @ApiRoute({ summary: 'Send a message to a phone', errorStatuses: [429] })
  phone(): object {
    this.limits.take('sms_phone', 'phone');
    return {};
  }

  @Get('network')
  @ApiRoute({ summary: 'Send a message', errorStatuses: [429] })
  network(): object {
    this.limits.takeForNetwork('sms_network');
    return {};
  }

  @Get('outage')
  @ApiRoute({ summary: 'Send a message while the gateway is unavailable', errorStatuses: [429, 503] })
  outage(): object {
    const [phone, network] = [this.limits.take('sms_phone', 'phone'), this.limits.takeForNetwork('sms_network')];
    for (const taken of [phone, phone, network]) taken.giveBack();
    throw OAuthError.unavailable(new Error('the gateway is unavailable'), 7);
  }
}

@Module({ controllers: [MessageController] })
class MessageModule {}

describe('a route gives back what it took from a limit', () => {
  const services: TestService[] = [];
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.stop()));
  });

  async function start(RATE_LIMIT = 'tokens=60000/60', environment = {}) {
    const options = { modules: [MessageModule], limits: LIMITS, environment: { RATE_LIMIT, ...environment } };
    const service = await startTestService(options);
    services.push(service);
    beginWindow(service);
    return service;
  }
  const limitsOf = ({ application }: TestService) => application.get<Limits<typeof LIMITS>>(Limits, { strict: false });
  const get = (service: TestService, path: string) => service.send('GET', `/messages/${path}`);
  async function statuses(service: TestService, ...paths: string[]): Promise<number[]> {
    const found: number[] = [];
    for (const path of paths) found.push((await get(service, path)).status);
    return found;
  }

  it('does not count a request that a route gave back, and gives it back only once', async () => {
    const service = await start();
    expect(await statuses(service, 'outage', 'outage', 'outage')).toEqual([503, 503, 503]);
    expect(await statuses(service, 'phone', 'outage', 'phone', 'phone')).toEqual([200, 503, 200, 429]);
    expect(await statuses(service, 'network', 'network', 'network')).toEqual([200, 200, 429]);
  });

  it('responds 503 with the Retry-After that the route chooses', async () => {
    expect((await get(await start(), 'outage')).headers.get('retry-after')).toBe('7');
  });

  it('gives nothing back in the window after that of the request', async () => {
    const service = await start();
    const taken = limitsOf(service).take('sms_phone', 'phone');
    service.clock.advance({ seconds: 60 });
    expect(await statuses(service, 'phone')).toEqual([200]);
    taken.giveBack();
    expect(await statuses(service, 'phone', 'phone')).toEqual([200, 429]);
  });

  it('counts what was given back in a window also after a request of an earlier window is given back', async () => {
    const service = await start('sms_phone=1/60');
    const early = limitsOf(service).take('sms_phone', 'phone');
    service.clock.advance({ seconds: 60 });
    limitsOf(service).take('sms_phone', 'phone').giveBack();
    early.giveBack();
    expect(await statuses(service, 'phone', 'phone')).toEqual([200, 429]);
  });

  it.runIf(REDIS_SERVER)('gives back in Redis for all processes', async () => {
    const redis = await TestRedis.start();
    try {
      const environment = { REDIS_URL: redis.url };
      const [one, other] = [await start('sms_phone=3/60', environment), await start('sms_phone=3/60', environment)];
      for (const each of [one, other]) {
        useLongRedisTimeouts(each);
        await untilConnected(each);
      }
      beginWindow(one, other);
      const taken = [limitsOf(one).take('sms_phone', 'phone'), limitsOf(one).take('sms_phone', 'phone')];
      await untilExchanged(one);
      expect(await statuses(other, 'phone')).toEqual([200]);
      await untilExchanged(other);
      expect(await statuses(other, 'phone')).toEqual([429]);
      for (const each of taken) each.giveBack();
      await untilExchanged(one);
      // A process reads the counts of a key after a request for the key. Whether this one is refused depends on when it
      // read them last, so the admitted requests count.
      const admitted = await statuses(other, 'phone');
      await untilExchanged(other);
      admitted.push(...(await statuses(other, 'phone', 'phone', 'phone')));
      expect(admitted.filter((status) => status === 200)).toHaveLength(taken.length);
    } finally {
      await redis.kill();
    }
  });
});
