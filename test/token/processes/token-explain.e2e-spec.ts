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

const run = (input: string) => runCommandWithInput(service, input, 'token', 'explain');

/** The exit code and the parsed JSON. */
async function explain(input: string) {
  const { code, output } = await run(input);
  return { code, ...JSON.parse(output) };
}

const b64 = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

it('agent-token prints the issuer of the token to stderr, because a service with another issuer rejects the token', async () => {
  const parameters = ['--email', ACME_AGENT.email, '--client-id', ACME_SITE, '--scope', 'customers:own'];
  const { output, messages } = await runCommandWithInput(service, '', 'agent-token', ...parameters);
  expect(messages).toBe(`issuer: ${claimsOf(output.trim()).iss}\n`);
});

describe('token explain', () => {
  it('prints the claims of a valid customer token as JSON, and exits with 0', async () => {
    const { access_token } = await newCustomer(service);
    const { sub, jti } = claimsOf(access_token);
    const { code, output } = await run(`  Authorization: Bearer ${access_token}\n`);
    const claims = { sub, jti, client_id: ACME_SITE, iss: 'https://auth.example' };
    expect({ code, ...JSON.parse(output) }).toMatchObject({
      code: 0,
      kind: 'customer access token',
      valid: true,
      claims,
    });
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
    expect(await explain(access_token)).toMatchObject({
      ...{ code: 1, kind: 'customer access token', valid: false, reason: 'revoked' },
      explanation: expect.stringMatching(/^The token or its session/),
    });
    const other = (await newCustomer(service)).access_token;
    service.clock.advance({ seconds: 30_000 });
    expect(await explain(other)).toMatchObject({ code: 1, reason: 'expired', claims: { client_id: ACME_SITE } });
  });

  it('says that a token has %3A in place of the colon, or no region prefix', async () => {
    const { access_token } = await newCustomer(service);
    const encoded = await explain(access_token.replace(':', '%3A'));
    expect(encoded).toMatchObject({ code: 1, valid: false, reason: 'percent_encoded' });
    const bare = await explain(access_token.slice('dev:'.length));
    expect(bare).toMatchObject({ code: 1, valid: false, reason: 'no_region' });
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

  it('prints nothing of a forged token, which could control the terminal', async () => {
    const claims = { iss: 'https://staging.example', sub: '\u001b[2Jx\nMARKED' };
    const { code, output } = await run(`dev:${b64({ alg: 'none', kid: 'key-1' })}.${b64(claims)}.AAAA`);
    expect({ code, ...JSON.parse(output) }).toMatchObject({ code: 1, reason: 'unknown_key' });
    for (const part of ['\u001b', 'MARKED', 'staging']) expect(output).not.toContain(part);
  });

  it.each(['x', 'dev:a.b.c', '{"active":true}', `dev:${'x'.repeat(100_000)}`])(
    'calls garbage unknown text, and does not repeat it: %j',
    async (garbage) => {
      const { output } = await run(garbage);
      const reason = expect.stringMatching(/^(malformed|unknown_key)$/);
      expect(await explain(garbage)).toMatchObject({ code: 1, kind: 'unknown text', valid: false, reason });
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
      stdout: expect.stringContaining('"valid": true'),
    });
    const huge = await runProcess(['token', 'explain'], 'x'.repeat(20_000_000));
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
