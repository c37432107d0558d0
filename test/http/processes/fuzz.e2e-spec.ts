import { expect, it } from 'vitest';
import { fuzz } from '../../fuzz/fuzz.js';

/** Other tests run in parallel on the same cores. */
const RESPONSE_TIMEOUT_MS = 15_000;

it('protocol §2.4 and §2.11: 5,000 valid and damaged requests get responses of the protocol from one process, in flat memory', async () => {
  const { statuses, succeeded } = await fuzz({ requests: 5_000, seed: 20_260_101, patience: RESPONSE_TIMEOUT_MS });
  expect(Object.keys(statuses).filter((status) => Number(status) >= 500)).toEqual([]);
  expect(succeeded).toEqual(
    expect.arrayContaining([
      'POST /v2/customer/token',
      'POST /v2/customer/{organization_id}/{group_id}/token',
      'POST /customer/',
      'POST /v2/customer/identity_transfer',
      'GET /v2/customer/info',
      'DELETE /v2/customer/token',
      'POST /oauth2/introspect',
    ]),
  );
});
