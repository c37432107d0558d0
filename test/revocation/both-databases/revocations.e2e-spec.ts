import { DataSource } from 'typeorm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase } from '../../../packages/conformance-kit/src/migrated-schema.js';
import type { TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { RecordedValue } from '../../../src/access-token/recorded-values.js';
import { agentTokenBody, exchangeCode, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { expectInvalidGrant } from '../../support/expect-error.js';
import { manage } from '../../support/management-api.js';
import { purge } from '../../support/operator-commands.js';
import { startTestService } from '../../support/test-service.js';
import {
  agentTokenPair,
  authorizationCode,
  codesOf,
  infoStatus,
  newCustomer,
  redeem,
  transferToken,
} from '../../support/transfers.js';
import { serviceOfTest } from '../../support/use-service.js';

const ADMIN_TOKEN = 'operator-of-the-revocations-test';
const SHORT_LIFETIMES = {
  CUSTOMER_TOKEN_TTL: '60',
  AGENT_TOKEN_TTL: '60',
  REFRESH_TOKEN_TTL: '60',
  TRANSFER_TOKEN_TTL: '60',
};

describe('lifetimes that are lowered after tokens were issued', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database?.remove());

  it('leave revoked tokens revoked for their full original lifetime', async () => {
    const before = await startTestService({ database });
    const customer = await newCustomer(before);
    const other = await newCustomer(before);
    const pair = await agentTokenPair(before);
    const replayed = await authorizationCode(before);
    const chain = (await exchangeCode(before, replayed)).body;
    await before.stop();

    const after = await serviceOfTest({ database, environment: { ...SHORT_LIFETIMES, ADMIN_TOKEN } });
    expect((await after.send('DELETE', TOKEN, bearer(customer.access_token))).status).toBe(200);
    expect((await after.send('DELETE', '/v2/token', bearer(pair.access_token))).status).toBe(200);
    const form = { ...bearer(ADMIN_TOKEN), 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ token: pair.refresh_token }).toString();
    expect((await manage(after, 'POST', '/oauth2/revoke', form, body)).status).toBe(200);
    await manage(after, 'DELETE', `/admin/identities/${other.entity_id}`, bearer(ADMIN_TOKEN));
    await codesOf(after).update({ kind: 'authorization' }, { consumedNetwork: 'another network' });
    expectInvalidGrant(await exchangeCode(after, replayed));
    for (const seconds of [600, 20_000]) {
      after.clock.advance({ seconds });
      await purge(after);
      for (const { access_token } of [customer, other]) expect(await infoStatus(after, access_token)).toBe(401);
      expect((await after.post(TOKEN, agentTokenBody(), bearer(pair.access_token))).status).toBe(401);
      for (const { refresh_token } of [pair, chain]) expectInvalidGrant(await refresh(after, refresh_token));
    }
  });

  it('leave a descendant revoked that lives longer than its revoked ancestor', async () => {
    const before = await startTestService({ database });
    before.clock.advance({ seconds: -20_000 });
    const ancestor = await newCustomer(before);
    before.clock.reset();
    const descendant = (await redeem(before, await transferToken(before, ancestor.access_token))).body;
    await before.stop();

    const after = await serviceOfTest({ database, environment: SHORT_LIFETIMES });
    expect((await after.send('DELETE', TOKEN, bearer(ancestor.access_token))).status).toBe(200);
    after.clock.advance({ seconds: 20_000 }); // The ancestor has expired, and the descendant has not.
    await purge(after);
    expect(await infoStatus(after, descendant.access_token)).toBe(401);
  });

  it('do not lower the recorded longest lifetime, whichever process starts last', async () => {
    await serviceOfTest({ database, environment: { CUSTOMER_TOKEN_TTL: '86400' } });
    const short = await serviceOfTest({ database, environment: SHORT_LIFETIMES });
    const recorded = short.application.get(DataSource).getRepository(RecordedValue);
    expect(await recorded.findOneBy({ name: 'longest_access_token_life' })).toMatchObject({ value: 86_400 });
  });

  it.each(['CUSTOMER_TOKEN_TTL', 'AGENT_TOKEN_TTL'])('cannot be longer than a day: %s', async (name) => {
    await expect(startTestService({ environment: { [name]: '86401' } })).rejects.toThrow(
      `${name}: must not be greater than 86400`,
    );
  });
});
