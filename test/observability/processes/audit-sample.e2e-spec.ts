import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { useDatabase } from '../../support/databases.js';
import { manage } from '../../support/management-api.js';
import { environmentOf, PRODUCTION, startServiceProcess } from '../../support/processes.js';
import { writeRegistry } from '../../support/test-registry.js';
import { httpClientOf } from '../../support/test-service.js';
import { newCustomer } from '../../support/transfers.js';

const TOKEN_COUNT = 20;

describe('the audit events token.issued of customers in the log', () => {
  const database = useDatabase();

  it.each([
    ['are one of 8', '8', 3],
    ['are each one without the setting', undefined, TOKEN_COUNT],
    ['are none with 0', '0', 0],
  ])('%s by AUDIT_TOKEN_ISSUED_ONE_OF, and the metric counts each', async (_, oneOf, expected) => {
    const REGISTRY_FILE = writeRegistry(join(database.folder, 'registry.yaml'));
    const environment = { ...environmentOf(database), ...PRODUCTION, REGISTRY_FILE };
    const setting = oneOf === undefined ? {} : { AUDIT_TOKEN_ISSUED_ONE_OF: oneOf };
    const service = await startServiceProcess({ ...environment, ...setting });
    for (let n = 0; n < TOKEN_COUNT; n++) await newCustomer(httpClientOf(service.url));
    const { text } = await manage(service, 'GET', '/metrics');
    expect(text).toContain(`cas_tokens_issued_total{grant="cookie"} ${TOKEN_COUNT}\n`);
    expect(await service.terminate()).toBe(0);
    const lines = service.process.stdout.split('\n');
    const events = (name: string) => lines.filter((line) => line.includes(`"event":"${name}"`)).length;
    expect(events('token.issued')).toBe(expected);
    expect(events('identity.created')).toBe(TOKEN_COUNT);
  });
});
