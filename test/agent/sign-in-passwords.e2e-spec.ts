import { describe, expect, it } from 'vitest';
import { AgentBrowser, FOR_TOKEN } from '../support/authorization-page.js';
import { ACME, testRegistry } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const PASSWORDS = ['12345678', '        ', ' a b ', 'Ünïcödé 😀', 'x'.repeat(64), 'y'.repeat(1_024)].map(
  (text, index) => ({
    email: `agent${index}@acme.example`,
    password: text.padEnd(8, '.'),
  }),
);

const service = useService(() => {
  const registry = testRegistry();
  for (const agent of PASSWORDS) registry.agents.push({ ...agent, name: agent.email, organization_id: ACME });
  return { registry };
});

describe('a password of an agent', () => {
  it.each(PASSWORDS)(
    'may have any characters and length, and must match exactly: $password',
    async ({ email, password }) => {
      const signIn = async (candidate: string) =>
        (await new AgentBrowser(service).signIn({ email, password: candidate })).status;
      expect(await signIn(password)).toBe(303);
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
