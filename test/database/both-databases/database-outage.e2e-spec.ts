import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import { onMariadb } from '../../../packages/conformance-kit/src/test-database.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { startTcpProxy } from '../../support/tcp-proxy.js';
import { startTestService } from '../../support/test-service.js';

it.runIf(onMariadb)(
  'the log has a line when the database becomes unavailable, and one when it is available again',
  async () => {
    const database = await createTestDatabase();
    const proxy = await startTcpProxy(database.url);
    const lines: string[] = [];
    const logger = pino({ level: 'info', base: null }, { write: (line: string) => void lines.push(line) });
    const service = await startTestService({
      database: { ...database, url: proxy.through(database.url) },
      log: { logger, lost: 0, flush: () => undefined },
    });
    /** Sends requests until the log has a text. */
    const says = async (text: string) => {
      while (!lines.some((line) => line.includes(text))) {
        await service.post(TOKEN, cookieBody());
        await sleep(100);
      }
    };
    await proxy.cut();
    await says('the database is unavailable, and requests');
    await proxy.restore();
    await says('the database is available again after');
    expect(lines.filter((line) => /"Database","msg":"the database is/.test(line))).toHaveLength(2);
    await service.stop();
    await proxy.close();
    await database.remove();
  },
);
