import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { AgentBrowser } from '../support/authorization-page.js';
import { expectError, expectInvalidRequest } from '../support/expect-error.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { applyRegistry } from '../support/registry-files.js';
import { ACME, ACME_SITE, testRegistry } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const PASSWORD = 'a long pass phrase';
const service = useService();

const entry = (email: string, password = PASSWORD) => ({
  ...{ email, password, name: 'Unicode', organization_id: ACME, scopes: ['customers:own'] },
});
const create = (email: string, password?: string) => service.admin('POST', '/admin/agents', entry(email, password));
const statusOfSignIn = async (email: string, password = PASSWORD) =>
  (await new AgentBrowser(service).signIn({ email, password })).status;

describe('the password of an agent', () => {
  const [nfc, nfd] = ['bücher für Ångström', 'bücher für Ångström'].map((text, index) =>
    text.normalize(index === 0 ? 'NFC' : 'NFD'),
  ) as [string, string];

  it.each([
    ['composed', nfc, 'decomposed', nfd],
    ['decomposed', nfd, 'composed', nfc],
  ])('that is set %s is right when it is typed %s (%s)', async (_set, set, _typed, typed) => {
    expect(set).not.toBe(typed);
    const email = `${randomUUID()}@acme.example`;
    const { body } = await create(email, set);
    expect(await statusOfSignIn(email, typed)).toBe(200);
    expect(await statusOfSignIn(email, set)).toBe(200);
    expect(await statusOfSignIn(email, `${typed}x`)).toBe(400);
    expect((await service.admin('PATCH', `/admin/agents/${body.id}`, { password: `${typed}!` })).status).toBe(200);
    expect(await statusOfSignIn(email, `${set}!`)).toBe(200);
  });

  it('stays the same, with its sessions, when a registry file has it in another form', async () => {
    const email = `${randomUUID()}@acme.example`;
    const withPassword = (password: string) => ({ ...testRegistry(), agents: [entry(email, password)] });
    await applyRegistry(service, withPassword(nfc));
    const applied = await applyRegistry(service, withPassword(nfd));
    expect(applied).toContainEqual({ kind: 'agent', id: email, outcome: 'unchanged' });
  });
});

describe('the email of an agent', () => {
  it.each([
    ['one@bücher.example', 'one@xn--bcher-kva.example', 'one@BÜCHER.example', 'one@bücher.example'.normalize('NFD')],
    ['agent@xn--bcher-kva.example', 'agent@bücher.example', 'AGENT@XN--BCHER-KVA.EXAMPLE', 'agent@bücher.example.'],
    ['Agent@Plain.example', 'agent@plain.example.', 'agent@plain.example', ' AGENT@PLAIN.EXAMPLE '],
  ])('%s is one agent in all forms of its domain, as browsers post it', async (email, ...forms) => {
    const { status, body } = await create(email);
    expect({ status, isAscii: /^[\x21-\x7e]+$/.test(body.email) }).toEqual({ status: 201, isAscii: true });
    for (const form of [email, ...forms]) {
      expect(await statusOfSignIn(form), form).toBe(200);
      expect(await issueAgentToken(service, { email: form.trim(), clientId: ACME_SITE }), form).toContain(':');
    }
    for (const form of forms.filter((each) => !/[. ]$/.test(each)))
      expectError(await create(form), { status: 409, error: 'conflict', hint: /^email: belongs to another agent/ });
  });

  it('counts failed sign-ins of one account together for each form of its domain', async () => {
    await create('guessed@bücher.example');
    const forms = ['guessed@bücher.example', 'guessed@xn--bcher-kva.example', 'Guessed@BÜCHER.example.'];
    const statuses: number[] = [];
    for (let guess = 0; guess < 11; guess++)
      statuses.push(await statusOfSignIn(forms[guess % forms.length] as string, 'wrong'));
    expect(statuses).toEqual([...Array(10).fill(400), 429]);
  });

  it('is given more than once if a registry file has it in two forms', async () => {
    const agents = [entry('two@bücher.example'), entry('two@xn--bcher-kva.example')];
    await expect(applyRegistry(service, { ...testRegistry(), agents })).rejects.toThrow(
      'agents[1].email: given more than once',
    );
  });

  it.each([
    'jürgen@acme.example',
    '"two words"@acme.example',
    'agent@acme.example/path',
    'agent@acme.example:80',
    'agent@acme%41.example',
    'agent@',
    `agent@${'ü'.repeat(63)}.example`,
    `agent@${'ü.'.repeat(60)}example`,
  ])('is rejected if a browser would refuse it: %s', async (email) => {
    expectInvalidRequest(await create(email), /^email: must be an email/);
    const agents = [entry(email)];
    await expect(applyRegistry(service, { ...testRegistry(), agents })).rejects.toThrow(
      'agents[0].email: must be an email',
    );
    expect(await statusOfSignIn(email)).toBe(400);
  });
});
