import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { claimsOf, refresh } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../../support/cookie-grant.js';
import { refreshCustomer, refreshingRegistry, stay, stayOf, WITH_REFRESH } from '../../support/customer-refresh.js';
import { issueAgentToken, runCommandWithInput } from '../../support/operator-commands.js';
import { environmentOf, runProgram } from '../../support/processes.js';
import { PROJECT } from '../../support/project-files.js';
import { moveOf } from '../../support/remember.js';
import { TestIssuer } from '../../support/test-issuer.js';
import { ACME, ACME_AGENT, ACME_BACKEND, ACME_ORIGIN, ACME_SITE } from '../../support/test-registry.js';
import { agentTokenPair, authorizationCode, newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const service = useService(async () => {
  idp = await TestIssuer.start();
  return { registry: refreshingRegistry(), environment: { TRUSTED_AGENT_ISSUERS: JSON.stringify([idp.trust()]) } };
});
let idp: TestIssuer;
afterAll(async () => {
  await idp?.stop();
});

const run = (input: string, ...options: string[]) =>
  runCommandWithInput(service, input, 'token', 'explain', ...options);

/** The exit code and the parsed JSON. */
async function explain(input: string) {
  const { code, output } = await run(input, '--json');
  return { code, ...JSON.parse(output) };
}

const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

it('agent-token prints the issuer of the token to stderr, because a service with another issuer rejects the token', async () => {
  const parameters = ['--email', ACME_AGENT.email, '--client-id', ACME_SITE, '--scope', 'customers:own'];
  const { output, messages } = await runCommandWithInput(service, '', 'agent-token', ...parameters);
  expect(messages).toBe(`issuer: ${claimsOf(output.trim()).iss}\n`);
});

describe('token explain', () => {
  it('prints a valid customer token as text, and exits with 0', async () => {
    const { access_token } = await newCustomer(service);
    const { sub, jti } = claimsOf(access_token);
    const { code, output } = await run(`  Authorization: Bearer ${access_token}\n`);
    expect(code).toBe(0);
    expect(output).toMatch(/^kind: customer access token\nvalid here: yes\nexplanation: /);
    for (const line of [`sub: ${sub}`, `jti: ${jti}`, `client_id: ${ACME_SITE}`, 'iss: https://auth.example'])
      expect(output.split('\n')).toContain(line);
    expect(output).toMatch(/^exp: \d{4}-\d\d-\d\dT[\d:]+\.000Z \(\d+\)$/m);
    expect(output).not.toContain(access_token.split('.')[2]);
  });

  it('says what an agent token is', async () => {
    expect(await explain(await issueAgentToken(service))).toMatchObject({
      code: 0,
      kind: 'agent access token',
      claims: { aud: 'agent-api', organization_id: ACME, scope: 'customers:own' },
    });
    expect(await explain(await idp.sign(service.clock.now()))).toMatchObject({
      code: 0,
      kind: 'agent token of a trusted issuer',
    });
    const wrong = await idp.sign(service.clock.now(), { aud: 'https://other.example' });
    expect(await explain(wrong)).toMatchObject({ code: 1, reason: 'other_audience' });
  });

  it('says why an access token has ended, and exits with 1', async () => {
    const { access_token } = await newCustomer(service);
    await service.send('DELETE', TOKEN, bearer(access_token));
    const { code, output } = await run(access_token);
    expect(code).toBe(1);
    expect(output).toMatch(
      /^kind: customer access token\nvalid here: no\nreason: revoked\nexplanation: The token or its session/,
    );
    const other = (await newCustomer(service)).access_token;
    service.clock.advance({ seconds: 30_000 });
    expect(await explain(other)).toMatchObject({ code: 1, reason: 'expired', claims: { client_id: ACME_SITE } });
  });

  it('says what a token would be with %3A replaced, or with the region prefix', async () => {
    const { access_token } = await newCustomer(service);
    const corrected = { valid: true, kind: 'customer access token' };
    const encoded = await explain(access_token.replace(':', '%3A'));
    expect(encoded).toMatchObject({ code: 1, valid: false, reason: 'percent_encoded', corrected });
    const bare = await explain(access_token.slice('dev:'.length));
    expect(bare).toMatchObject({ code: 1, valid: false, reason: 'no_region', corrected });
    const { output } = await run(access_token.replace(':', '%3a'));
    expect(output).toMatch(/^with the text corrected:\n {2}kind: customer access token\n {2}valid here: yes\n/m);
  });

  it('finds a transfer token by its hash, and says whether it was redeemed', async () => {
    const { access_token, entity_id } = await newCustomer(service);
    const code = await transferToken(service, access_token);
    const stored = { subject: entity_id, clientId: ACME_SITE, organizationId: ACME };
    expect(await explain(code)).toMatchObject({ code: 0, kind: 'transfer token', stored });
    const ended = await transferToken(service, access_token);
    const { body } = await redeem(service, code);
    const { sid } = claimsOf(body.access_token);
    expect(await explain(code)).toMatchObject({ code: 1, reason: 'already_used', stored: { session: sid } });
    expect((await redeem(service, code)).status).toBe(400);
    await service.send('DELETE', TOKEN, bearer(access_token));
    expect(await explain(ended)).toMatchObject({ code: 1, reason: 'not_stored' });
    const unused = await transferToken(service, (await newCustomer(service)).access_token);
    service.clock.advance({ seconds: 30_000 });
    expect(await explain(unused)).toMatchObject({ code: 1, reason: 'expired' });
  });

  it('finds an authorization code and a refresh token by their hashes, and leaves them usable', async () => {
    const code = await authorizationCode(service);
    const stored = { clientId: ACME_BACKEND };
    expect(await explain(code)).toMatchObject({ code: 0, kind: 'authorization code', stored });
    const { refresh_token } = await agentTokenPair(service);
    expect(await explain(refresh_token)).toMatchObject({ code: 0, kind: 'refresh token', stored });
    const { body } = await refresh(service, refresh_token);
    expect([await explain(refresh_token), await explain(body.refresh_token)]).toMatchObject([{ code: 0 }, { code: 0 }]);
    await refresh(service, body.refresh_token);
    expect(await explain(refresh_token)).toMatchObject({ code: 1, reason: 'already_used' });
    expect(await explain(`dev:${'x'.repeat(43)}`)).toMatchObject({ code: 1, reason: 'not_stored' });
  });

  it('finds the refresh token of a customer, and accepts the predecessor until its successor is used', async () => {
    const { entity_id, access_token, refresh_token: first } = await stayOf(service);
    const { sid } = claimsOf(access_token);
    const stored = { clientId: ACME_SITE, subject: entity_id, organizationId: ACME, session: sid };
    const usable = { code: 0, kind: 'refresh token', stored };
    const replaced = { code: 1, kind: 'refresh token', reason: 'already_used', stored };
    expect(await explain(first)).toMatchObject(usable);
    const second = (await refreshCustomer(service, first)).body.refresh_token;
    expect([await explain(first), await explain(second)]).toMatchObject([usable, usable]);
    const third = (await refreshCustomer(service, second)).body.refresh_token;
    expect([await explain(first), await explain(second), await explain(third)]).toMatchObject([
      replaced,
      usable,
      usable,
    ]);
    expect((await refreshCustomer(service, second)).body.refresh_token).toBe(third);
  });

  it('names the deleted client of an access token, a transfer token and a refresh token', async () => {
    const client_id = 'deleted-later';
    const grants = { identity_token: { remember: ['refresh_token'] } };
    const client = { client_id, name: 'Deleted later', client_type: 'web', organization_id: ACME };
    const entry = { ...client, origins: [ACME_ORIGIN], grant_types: WITH_REFRESH, grants };
    expect((await service.admin('POST', '/admin/clients', entry)).status).toBe(201);
    const { access_token } = (await service.post(TOKEN, cookieBody({ client_id }))).body;
    const code = await transferToken(service, access_token, { client_id });
    const move = await moveOf(service, access_token, { client_id });
    const { refresh_token } = (await stay(service, move, { client_id })).body;
    const tokens = [access_token, code, refresh_token];
    for (const token of tokens) expect(await explain(token)).toMatchObject({ code: 0 });
    expect((await service.admin('DELETE', `/admin/clients/${client_id}`)).status).toBe(200);
    for (const token of tokens) {
      const explanation = 'The client of the token was deleted.';
      expect(await explain(token)).toMatchObject({ code: 1, reason: 'client_revoked', explanation });
    }
  });

  it('labels what a forged token claims as unverified, and escapes what could control the terminal', async () => {
    const claims = {
      iss: 'https://staging.example',
      sub: '\u001b[2Jx\nvalid here: yes',
      exp: 1_900_000_000,
      claim: 'MARKED',
    };
    const forged = `dev:${b64({ alg: 'none', kid: 'key-1' })}.${b64(claims)}.AAAA`;
    expect(await explain(forged)).toMatchObject({
      code: 1,
      reason: 'unknown_key',
      unverified_claims: { iss: 'https://staging.example', exp: 1_900_000_000, kid: 'key-1' },
    });
    const { output } = await run(forged);
    expect(output).toContain('unverified sub: \\u001b[2Jx\\u000avalid here: yes\n');
    expect(output).not.toContain('\u001b');
    expect(output).not.toContain('MARKED');
  });

  it.each(['x', 'dev:a.b.c', '{"active":true}', `dev:${'x'.repeat(100_000)}`])(
    'calls garbage unknown text, and does not repeat it: %j',
    async (garbage) => {
      const { code, output } = await run(garbage);
      expect(code).toBe(1);
      expect(output).toMatch(/^kind: unknown text\nvalid here: no\nreason: (malformed|unknown_key)\n/);
      expect(output.length).toBeLessThan(300);
    },
  );
});

describe('the process of token explain', () => {
  const runProcess = (parameters: string[], input: string) => {
    const env = { ...environmentOf(service.database), AUTH_URL: 'https://auth.example' };
    return runProgram(process.execPath, [join(PROJECT, 'dist/cli.js'), ...parameters], { env, input });
  };

  it('reads the token from standard input, and no more than it needs', async () => {
    const { access_token } = await newCustomer(service);
    expect(await runProcess(['token', 'explain'], `${access_token}\n`)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('valid here: yes\n'),
    });
    const huge = await runProcess(['token', 'explain', '--json'], 'x'.repeat(20_000_000));
    expect(huge).toMatchObject({ code: 1, stdout: expect.stringContaining('"reason": "malformed"') });
  });

  it('exits with 2 after a usage error, and does not repeat its parameters', async () => {
    const { code, stdout, stderr } = await runProcess(['token', 'explain', 'dev:MARKED'], '');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('token explain');
    expect(stderr).not.toContain('MARKED');
  });

  it('prints the usage on stdout and exits with 0 for --help', async () => {
    const { code, stdout, stderr } = await runProcess(['registry', 'apply', '--help'], '');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^usage: node dist\/cli\.js COMMAND\n/);
  });
});
