import { beforeAll, describe, expect, it } from 'vitest';
import { agentTokenBody, pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { identitiesOf } from '../support/identities.js';
import { loadExample } from '../support/load-example.js';
import { managerToken, managingRegistry } from '../support/managed-customers.js';
import { ACME_SITE } from '../support/test-registry.js';
import { infoStatus, redeem } from '../support/transfers.js';
import { useService } from '../support/use-service.js';

const { customerIdOf, endSessions, eraseCustomer, exportUser, signOutEverywhere, transferToken } =
  await loadExample('backend/user-data.js');

const service = useService({ registry: managingRegistry() });
let agent: string;
beforeAll(async () => {
  agent = await managerToken(service);
});

const options = () => ({ url: service.url, session: { token: async () => agent } });
const tokenOf = async (external_id: string) =>
  (await service.post(TOKEN, agentTokenBody({ external_id }), bearer(agent))).body;

describe('backend/user-data.js', () => {
  it('exports a user, ends the tokens and erases the data, of this user only', async () => {
    const [one, other] = [await tokenOf('user-1'), await tokenOf('user-2')];
    const tables = await exportUser(options(), 'user-1');
    expect(tables.customer).toEqual([expect.objectContaining({ entity_id: one.entity_id })]);
    await signOutEverywhere(options(), 'user-1');
    expect(await infoStatus(service, one.access_token)).toBe(401);
    expect((await tokenOf('user-1')).entity_id).toBe(one.entity_id);
    await eraseCustomer(options(), await customerIdOf(options(), 'user-1'));
    expect((await tokenOf('user-1')).entity_id).not.toBe(one.entity_id);
    expect(await infoStatus(service, other.access_token)).toBe(200);
  });

  it('ends everything of a visitor who has no external id', async () => {
    const visitor = (await service.post(TOKEN, agentTokenBody({}), bearer(agent))).body;
    await endSessions(options(), visitor.entity_id);
    expect(await infoStatus(service, visitor.access_token)).toBe(401);
  });

  it('erases a customer again by its id, and then knows no customer of the user', async () => {
    const { entity_id } = await tokenOf('user-3');
    const customerId = await customerIdOf(options(), 'user-3');
    expect(customerId).toBe(entity_id);
    for (let repetition = 0; repetition < 2; repetition++) await eraseCustomer(options(), customerId);
    expect(await customerIdOf(options(), 'user-3')).toBeUndefined();
  });

  it('moves the customer of a user to a new device, which proves that it created the challenge', async () => {
    const { entity_id } = await tokenOf('user-5');
    const { verifier, asked } = pkce();
    const code = await transferToken(options(), entity_id, ACME_SITE, asked.code_challenge);
    expect((await redeem(service, code, { code_verifier: 'x'.repeat(43) })).status).toBe(400);
    expect((await redeem(service, code, { code_verifier: verifier })).body.entity_id).toBe(entity_id);
  });

  it('has nothing to end for a user who never was a customer, and creates none', async () => {
    const count = await identitiesOf(service).count();
    await signOutEverywhere(options(), 'unknown-user');
    expect(await customerIdOf(options(), 'unknown-user')).toBeUndefined();
    expect(await identitiesOf(service).count()).toBe(count);
  });

  it('gets a new agent token if the service rejects the first, and fails with the hint of other errors', async () => {
    await tokenOf('user-4');
    const session = { token: async (rejected?: string) => (rejected === undefined ? 'dev:x' : agent) };
    expect(Object.keys(await exportUser({ url: service.url, session }, 'user-4'))).toContain('session');
    const failure = { status: 400, hint: expect.stringMatching(/^external_id: must be 1 to 255/) };
    await expect(signOutEverywhere(options(), 'a\nb')).rejects.toMatchObject(failure);
    await expect(signOutEverywhere(options(), undefined)).rejects.toMatchObject({ error: 'no_user_id' });
  });
});
