import { join } from 'node:path';
import { expect, it } from 'vitest';
import { TOKEN } from '../../support/cookie-grant.js';
import { emptyDatabaseOfTest } from '../../support/databases.js';
import { environmentOf, PRODUCTION, startServiceProcess } from '../../support/processes.js';
import { RawConnection, rawRequest } from '../../support/raw-http.js';
import { writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';
import { newCustomer, redeem, redeemBody, transferToken } from '../../support/transfers.js';

it('does not handle a request whose connection was reset before the service accepted it, because it has no address', async () => {
  const database = await emptyDatabaseOfTest();
  const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'));
  const environment = { ...environmentOf(database), ...PRODUCTION, REGISTRY_FILE, MIGRATE_ON_START: 'true' };
  const pod = await startServiceProcess(environment);
  const service = httpClientOf(pod.url);
  const code = await transferToken(service, (await newCustomer(service)).access_token);
  pod.process.signal('SIGSTOP'); // the kernel opens connections meanwhile
  const connection = await RawConnection.open(pod.url);
  await connection.send(rawRequest(`POST ${TOKEN}`, JSON.stringify(redeemBody(code)))).sent();
  connection.abort();
  pod.process.signal('SIGCONT');
  expect((await redeem(service, code)).status).toBe(200);
  expect(await pod.terminate()).toBe(0);
});
