import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeKeySet } from '../../packages/conformance-kit/src/key-set-file.js';
import { networkOf } from '../../src/platform/network.js';
import { sha256 } from '../../src/platform/secret.js';
import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { AgentBrowser } from '../support/authorization-page.js';
import { TOKEN } from '../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay } from '../support/customer-refresh.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { moveOf } from '../support/remember.js';
import { ACME, ACME_AGENT } from '../support/test-registry.js';
import { everythingIn, newCustomer, redeem, transferToken } from '../support/transfers.js';
import { serviceOfTest, type UsedService, useService } from '../support/use-service.js';

const IP = '127.0.0.1';

/** A customer on a second device that has used its refresh token. */
async function customerWithDevice(service: UsedService): Promise<{ entity_id: string }> {
  const { entity_id, access_token } = await newCustomer(service);
  const { refresh_token } = (await stay(service, await moveOf(service, access_token))).body;
  expect((await refreshCustomer(service, refresh_token)).status).toBe(200);
  return { entity_id };
}

/** The SHA-256 of the network, alone and with each stored text as a salt before or after the network. */
function hashesOfNetwork(stored: string): Set<string> {
  const networks = [IP, networkOf(IP)];
  const salts = new Set(['', ...[...stored.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text)]);
  const separators = ['', ' ', ':', '.', '|', '\n'];
  return new Set(
    [...salts].flatMap((salt) =>
      networks.flatMap((network) =>
        separators.flatMap((separator) => [
          sha256(`${salt}${separator}${network}`),
          sha256(`${network}${separator}${salt}`),
        ]),
      ),
    ),
  );
}

describe('the network from which a code or a refresh token was used', () => {
  const service = useService({ registry: refreshingRegistry() });

  it('cannot be found in the database by hashing all IPv4 addresses', async () => {
    await customerWithDevice(service);
    const stored = await everythingIn(service);
    expect(stored).not.toContain(IP);
    const hashes = hashesOfNetwork(stored);
    const found = [...stored.matchAll(/[0-9a-f]{64}/g)].map(([hash]) => hash).filter((hash) => hashes.has(hash));
    expect(found).toEqual([]);
  });

  it('is not in the export of the customer’s data, also not as a hash', async () => {
    const { entity_id } = await customerWithDevice(service);
    const { status, text, body } = await service.admin('GET', `/admin/customers/${entity_id}/export`);
    expect(status).toBe(200);
    expect(body.tables.session.map(({ kind }: { kind: string }) => kind).sort()).toEqual(['own', 'refresh']);
    expect(text).not.toContain(IP);
    expect(text).not.toContain('network');
  });

  it('counts as another network after a rotation of the signing key', async () => {
    const code = await transferToken(service, (await newCustomer(service)).access_token);
    expect((await redeem(service, code)).status).toBe(200);
    const SIGNING_KEYS_FILE = writeKeySet(join(service.database.folder, 'other-keys.json'));
    const rotated = await serviceOfTest({ database: service.database, environment: { SIGNING_KEYS_FILE } });
    expect((await redeem(rotated, code)).status).toBe(400);
    expect(rotated.audit.map(({ event }) => event)).toContain('transfer_token.replayed');
  });
});

describe('the id of a user in the sign-in system of the organization', () => {
  const service = useService();

  it('is not in the export of the customer’s data as a hash, which a list of ids would reveal', async () => {
    const headers = bearer(await issueAgentToken(service));
    const external_id = 'user@acme.example';
    const { entity_id } = (await service.post(TOKEN, agentTokenBody({ external_id }), headers)).body;
    const { text, body } = await service.admin('GET', `/admin/customers/${entity_id}/export`);
    expect(body.tables.customer).toEqual([expect.objectContaining({ entity_id })]);
    for (const known of [external_id, JSON.stringify([ACME, external_id])]) expect(text).not.toContain(sha256(known));
  });
});

describe('the cookie of a device on which an agent has signed in', () => {
  const service = useService();

  it('does not contain the email or its hash, which an address book would reveal', async () => {
    const browser = new AgentBrowser(service);
    await browser.signIn(ACME_AGENT);
    const cookies = decodeURIComponent(browser.cookie ?? '');
    expect(cookies).toContain('agent_device');
    expect(cookies).not.toContain(ACME_AGENT.email);
    expect(cookies).not.toContain(sha256(ACME_AGENT.email));
  });
});
