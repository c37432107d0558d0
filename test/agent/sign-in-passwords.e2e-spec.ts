import { createRequire } from 'node:module';
import { describe, expect, it, vi } from 'vitest';
import { AgentBrowser, FOR_TOKEN } from '../support/authorization-page.js';
import { usePasswordHashCostOfProduction } from '../support/cheap-password-hashes.js';
import { ACME, ACME_AGENT, testRegistry } from '../support/test-registry.js';
import { type TestService } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

/** The module that `registry/agent-password.ts` loads. */
const argon2: typeof import('@node-rs/argon2') = createRequire(import.meta.url)('@node-rs/argon2');
/** A hash in PHC string format. The time of a verification depends on everything except the bytes of salt and hash. */
const PHC = /^\$(argon2id)\$v=(\d+)\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/;
/** The OWASP minimum for argon2id: 19 MiB, 2 passes. */
const COST_OF_PRODUCTION = ['argon2id', '19', '19456', '2', '1', 16, 32];
const PASSWORD = 'a wrong password';
const WITHOUT_PASSWORD = 'crm@acme.example';

const PASSWORDS = ['        ', ' a b .....', 'Ünïcödé 😀', 'y'.repeat(1_024)].map((password, index) => ({
  email: `agent${index}@acme.example`,
  password,
}));

const service = useService(() => {
  const registry = testRegistry();
  for (const agent of PASSWORDS) registry.agents.push({ ...agent, name: agent.email, organization_id: ACME });
  return { registry };
});
const withoutPassword = () => {
  const registry = testRegistry();
  registry.agents.push({ email: WITHOUT_PASSWORD, name: 'CRM', organization_id: ACME });
  return { registry };
};

describe('a password of an agent', () => {
  it.each(PASSWORDS)(
    'may have any characters and length, and must match exactly: $password',
    async ({ email, password }) => {
      const signIn = async (candidate: string) =>
        (await new AgentBrowser(service).signIn({ email, password: candidate })).status;
      expect(await signIn(password)).toBe(200);
      for (const other of [password.slice(0, -1), `${password} `, ` ${password}`])
        expect(await signIn(other)).toBe(400);
    },
  );

  it('is entered in a masked field that a password manager may fill', async () => {
    const { text } = await new AgentBrowser(service).open(FOR_TOKEN);
    expect(text).toMatch(/<input id="password" name="password" type="password" autocomplete="current-password"/);
    expect(text).not.toMatch(/autocomplete="off"|onpaste/);
  });
});

describe('an agent without a password', () => {
  const service = useService(withoutPassword);
  const signIn = (email: string, password: string) => new AgentBrowser(service).signIn({ email, password });

  it('cannot sign in with any password, and gets the response of a wrong one', async () => {
    const { status, text } = await signIn(ACME_AGENT.email, PASSWORD);
    for (const password of [PASSWORD, '', ' ', 'null', 'undefined']) {
      const refused = await signIn(WITHOUT_PASSWORD, password);
      const page = refused.text.replace(WITHOUT_PASSWORD, ACME_AGENT.email);
      expect([refused.status, page]).toEqual([status, text]);
    }
  });

  it('can sign in with a password that the entry has got, until the password is removed', async () => {
    const { agents } = (await service.admin('GET', '/admin/agents', undefined)).body;
    const { id } = agents.find(({ email }: { email: string }) => email === WITHOUT_PASSWORD);
    const statusAfter = async (password: string | null) => {
      expect((await service.admin('PATCH', `/admin/agents/${id}`, { password })).status).toBe(200);
      return (await signIn(WITHOUT_PASSWORD, 'a long pass phrase')).status;
    };
    expect(await statusAfter('a long pass phrase')).toBe(200);
    expect(await statusAfter(null)).toBe(400);
  });
});

describe('with the cost of production', () => {
  usePasswordHashCostOfProduction();
  const service = useService(withoutPassword);

  const expected = { verified: [{ password: PASSWORD, cost: COST_OF_PRODUCTION }], hashed: 0 };

  it('a sign-in with an unknown email does the same work as one with a wrong password', async () => {
    expect(await hashWorkOf(service, ACME_AGENT.email)).toEqual(expected);
    expect(await hashWorkOf(service, 'unknown@acme.example')).toEqual(expected);
  });

  it('a sign-in as an agent without a password does the same work as one with a wrong password', async () => {
    expect(await hashWorkOf(service, WITHOUT_PASSWORD)).toEqual(expected);
  });
});

/** The work of argon2 during one attempt: the verified passwords with the cost of their hash, and other hashes. */
async function hashWorkOf(service: TestService, email: string): Promise<unknown> {
  const browser = new AgentBrowser(service);
  const page = await browser.open(FOR_TOKEN);
  const [verify, hash, hashRaw] = [
    vi.spyOn(argon2, 'verify'),
    vi.spyOn(argon2, 'hash'),
    vi.spyOn(argon2, 'hashRaw'),
  ] as const;
  const { status } = await browser.submit(page, { email, password: PASSWORD });
  expect(status).toBe(400);
  const verified = verify.mock.calls.map(([phc, password]) => ({ password, cost: costOf(String(phc)) }));
  const hashed = hash.mock.calls.length + hashRaw.mock.calls.length;
  for (const spy of [verify, hash, hashRaw]) spy.mockRestore();
  return { verified, hashed };
}

function costOf(passwordHash: string): unknown[] {
  const [, algorithm, version, memoryKib, passes, lanes, salt = '', hash = ''] = PHC.exec(passwordHash) ?? [];
  return [algorithm, version, memoryKib, passes, lanes, byteLength(salt), byteLength(hash)];
}

const byteLength = (base64: string) => Buffer.from(base64, 'base64').length;
