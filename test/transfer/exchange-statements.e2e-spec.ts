import { randomUUID } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { Database } from '../../src/platform/database/database.js';
import { sha256 } from '../../src/platform/secret.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { refreshingRegistry, stay } from '../support/customer-refresh.js';
import { expectInvalidGrant } from '../support/expect-error.js';
import { moveOf } from '../support/remember.js';
import { StatementGate } from '../support/statement-gate.js';
import { clientOf } from '../support/statements.js';
import { codesOf, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const service = useService({ registry: refreshingRegistry() });

const end = async (token: string) => expect((await service.send('DELETE', TOKEN, bearer(token))).status).toBe(200);

describe('an exchange of a transfer token', () => {
  it('sends two statements: one reads the code, and one checks and redeems it', async () => {
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const { dialect } = clientOf(service);
    const spies = (['select', 'write'] as const).map((name) => vi.spyOn(clientOf(service), name));
    expect((await redeem(service, code)).status).toBe(200);
    const texts = spies.flatMap(({ mock }) => mock.calls.map(([statement]) => statement.text(dialect)));
    for (const spy of spies) spy.mockRestore();
    // other statements are those of the registry and of the revocation feed in the background
    const ofExchange = texts.filter((sql) => /one_time_code|AS ended|customer/.test(sql));
    expect(ofExchange.map((sql) => sql.split(' ', 1)[0])).toEqual(['SELECT', 'UPDATE']);
  });

  it('is refused if the bearer ends after the code was read, and the code stays unused', async () => {
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const requestId = randomUUID();
    const gate = new StatementGate(service, requestId, 1);
    const exchange = redeem(service, code, {}, { 'x-request-id': requestId });
    await gate.reached;
    await end(access_token);
    gate.close();
    expectInvalidGrant(await exchange);
    const row = await codesOf(service).findOneBy({ hash: sha256(code) });
    expect(row).toMatchObject({ consumedAt: null, consumedBy: null });
  });

  it('stores nothing for a bearer that has ended, with or without remember', async () => {
    const { access_token } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const move = await moveOf(service, access_token);
    await end(access_token);
    const insert = vi.spyOn(service.application.get(Database), 'insert');
    expectInvalidGrant(await stay(service, move));
    expectInvalidGrant(await redeem(service, code));
    expect(insert).not.toHaveBeenCalled();
  });
});
