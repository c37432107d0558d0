import { createHash } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import { OutputCapture } from '../../../packages/conformance-kit/src/output-capture.js';
import { CustomerService } from '../../../src/identity/customer.service.js';
import { OAuthError } from '../../../src/oauth/oauth-error.js';
import { OneTimeCode } from '../../../src/token/stores/one-time-code.entity.js';
import { bearer } from '../../support/authorization-headers.js';
import { CODE_LIFETIME_SECONDS, CODES, CODES_OF_CALLER, codeExtension } from '../../support/code-extension.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { endSessions } from '../../support/end-sessions.js';
import { expectError, expectInvalidGrant } from '../../support/expect-error.js';
import { issueAgentToken, purge } from '../../support/operator-commands.js';
import { successfulOf, times, winnerOf } from '../../support/races.js';
import { delaySelects } from '../../support/statements.js';
import { ACME, ACME_SITE, PUBLIC_SITE, RIVAL } from '../../support/test-registry.js';
import type { TestResponse } from '../../support/test-service.js';
import { everythingIn, infoStatus, newCustomer } from '../../support/transfers.js';
import { serviceOfTest, type UsedService, useService } from '../../support/use-service.js';

const GUESS_COUNT = 5;
const RESULTS_OF_20 = [200, ...Array(19).fill(400)];

const output = new OutputCapture();
const service = useService({ ...codeExtension, log: output.log });

let phones = 0;
const newPhone = () => `+49${1_000_000 + phones++}`;
const AT_ACME = { client_id: PUBLIC_SITE, organization_id: ACME };

const issued = async (more: object = {}): Promise<string> => {
  const { status, body } = await service.post(CODES, { ...AT_ACME, grant: 'test_code', ...more });
  expect(status).toBe(200);
  return body.code;
};
const redeem = (code: string, more: object = {}, at: UsedService = service): Promise<TestResponse> =>
  at.post(TOKEN, { ...AT_ACME, grant_type: 'test_code', code, ...more });
const statusOf = async (...parameters: Parameters<typeof redeem>) => (await redeem(...parameters)).status;
/** A short code that is not the right one. */
const wrong = (code: string, step = 1) => String((Number(code) + step) % 10 ** code.length).padStart(code.length, '0');

function expectServerError(response: TestResponse, reason: string): void {
  expectError(response, { status: 500, error: 'server_error', hint: undefined });
  expect(output.about(response.headers.get('x-request-id') ?? '').join()).toContain(reason);
}

describe('a code of OneTimeCodes', () => {
  it('gives one token, and a second request gets none', async () => {
    const code = await issued();
    expect(code).toMatch(/^[\w-]{43}$/);
    expect(await statusOf(code)).toBe(200);
    expectInvalidGrant(await redeem(code));
  });

  it.each([
    ['a random code', () => ({})],
    ['a short code', () => ({ recipient: newPhone() })],
  ])('gives one token to 20 requests at once on two processes: %s', async (_, make) => {
    const other = await serviceOfTest({ ...codeExtension, database: service.database });
    for (const each of [service, other]) delaySelects(each);
    const sent = make();
    const code = await issued({ ...sent, grant: 'test_code' });
    const responses = await times(20, (index) => redeem(code, sent, index % 2 === 0 ? service : other));
    expect(responses.map(({ status }) => status).sort()).toEqual(RESULTS_OF_20);
    winnerOf(responses);
  });

  it('expires by the clock after `lifetime`, which the route gets as expiresIn', async () => {
    const { body } = await service.post(CODES, { ...AT_ACME, grant: 'test_code' });
    expect(body.expires_in).toBe(CODE_LIFETIME_SECONDS);
    const [early, late] = [await issued(), body.code];
    service.clock.advance({ seconds: CODE_LIFETIME_SECONDS - 60 });
    expect(await statusOf(early)).toBe(200);
    service.clock.advance({ seconds: 60 });
    expectInvalidGrant(await redeem(late));
  });

  it.each([
    ['a random code', {}],
    ['a short code', { recipient: '+4917012345' }],
  ])('works only for the client it was issued for, and stays usable for it: %s', async (_, sent) => {
    const code = await issued(sent);
    expectInvalidGrant(await redeem(code, { ...sent, client_id: ACME_SITE }));
    expect(await statusOf(code, sent)).toBe(200);
  });

  it.each([
    ['a random code', {}],
    ['a short code', { recipient: '+4917012346' }],
  ])('works for another client of the organization if the grant declares anyClient: %s', async (_, sent) => {
    const grant = 'test_code_of_any_client';
    const code = await issued({ ...sent, grant });
    expect(await statusOf(code, { ...sent, grant_type: grant, client_id: ACME_SITE })).toBe(200);
  });

  it.each([
    ['a random code', 'test_code', {}],
    ['a short code', 'test_code', { recipient: '+4917012347' }],
    ['a random code of any client', 'test_code_of_any_client', {}],
    ['a short code of any client', 'test_code_of_any_client', { recipient: '+4917012347' }],
  ])('works only in the organization it was issued for: %s', async (_, grant, sent) => {
    const code = await issued({ ...sent, grant });
    expectInvalidGrant(await redeem(code, { ...sent, grant_type: grant, organization_id: RIVAL }));
    expect(await statusOf(code, { ...sent, grant_type: grant })).toBe(200);
  });

  it('works only for the grant it was issued for', async () => {
    for (const sent of [{}, { recipient: newPhone() }]) {
      const code = await issued(sent);
      expectInvalidGrant(await redeem(code, { ...sent, grant_type: 'test_code_of_two_guesses' }));
      expect(await statusOf(code, sent)).toBe(200);
    }
  });

  it('decides about the organization if the body declares none, for a client that the organization admits', async () => {
    const grant = 'test_code_of_organization';
    const code = await issued({ grant, organization_id: RIVAL });
    const { status, body } = await service.post(TOKEN, { grant_type: grant, client_id: PUBLIC_SITE, code });
    expect(status).toBe(200);
    const { organization_id } = (await service.admin('GET', `/admin/customers/${body.entity_id}`)).body;
    expect(organization_id).toBe(RIVAL);
  });

  it('gives its content back unchanged, at most 4 KB of JSON', async () => {
    const content = { seat: '17A', names: ['Zoë', '😀'], more: { count: 3, none: null } };
    const { body } = await redeem(await issued({ content }));
    expect(body.content).toEqual(content);
    await issued({ content: { x: 'x'.repeat(4_088) } });
    const response = await service.post(CODES, { ...AT_ACME, grant: 'test_code', content: { x: 'x'.repeat(4_089) } });
    expectServerError(response, 'the content of a code has more than 4096 bytes');
  });

  it.each([
    [429, () => OAuthError.rateLimited(1, 'sms')],
    [503, () => OAuthError.unavailable()],
  ])('works again after a response of %i', async (status, error) => {
    const sent = { recipient: newPhone() };
    const code = await issued(sent);
    vi.spyOn(service.application.get(CustomerService), 'create').mockRejectedValueOnce(error());
    expect(await statusOf(code, sent)).toBe(status);
    expect(await statusOf(code, sent)).toBe(200);
    expectInvalidGrant(await redeem(code, sent));
  });
});

describe('a short code of OneTimeCodes', () => {
  let sent: { recipient: string };
  const guess = (code: string, more: object = {}) => redeem(code, { ...sent, ...more });
  const guessWrongly = async (code: string, count: number, more: object = {}) => {
    for (let step = 1; step <= count; step++) expectInvalidGrant(await guess(wrong(code, step), more));
  };
  const atNewPhone = () => {
    sent = { recipient: newPhone() };
  };

  it('has 6 digits, or as many as the route says, and works for its recipient only', async () => {
    atNewPhone();
    expect(await issued(sent)).toMatch(/^\d{6}$/);
    const code = await issued({ ...sent, digits: 8 });
    expect(code).toMatch(/^\d{8}$/);
    for (const recipient of [newPhone(), undefined]) expectInvalidGrant(await redeem(code, { recipient }));
    expect((await guess(code)).status).toBe(200);
  });

  it.each([
    ['5', 'test_code', GUESS_COUNT],
    ['the declared number', 'test_code_of_two_guesses', 2],
  ])('is refused after %s of wrong guesses, and not after one less', async (_, grant, count) => {
    atNewPhone();
    const admitted = await issued({ ...sent, grant });
    await guessWrongly(admitted, count - 1, { grant_type: grant });
    expect((await guess(admitted, { grant_type: grant })).status).toBe(200);
    atNewPhone();
    const refused = await issued({ ...sent, grant });
    await guessWrongly(refused, count, { grant_type: grant });
    expectInvalidGrant(await guess(refused, { grant_type: grant }));
  });

  it('is compared with at most 5 of 30 wrong guesses at once, after which the right one is refused', async () => {
    atNewPhone();
    const code = await issued(sent);
    const other = await serviceOfTest({ ...codeExtension, database: service.database });
    await times(30, (index) => redeem(wrong(code, index + 1), sent, index % 2 === 0 ? service : other));
    expectInvalidGrant(await guess(code));
    expect(await service.rowsOf(OneTimeCode).maximum('guesses')).toBe(GUESS_COUNT);
  });

  it('is not always among the guesses of all 10 codes of one digit at once, of which 5 are compared', async () => {
    delaySelects(service);
    let found = 0;
    for (let round = 0; round < 20; round++) {
      atNewPhone();
      await issued({ ...sent, digits: 1 });
      found += successfulOf(await times(10, (digit) => guess(String(digit)))).length;
    }
    expect(found).toBeLessThan(20);
  });

  it('is replaced by the next one of its recipient, which does not allow more guesses', async () => {
    atNewPhone();
    const first = await issued(sent);
    await guessWrongly(first, 3);
    await guessWrongly(await issued(sent), GUESS_COUNT - 3);
    expectInvalidGrant(await guess(await issued(sent)));
  });

  it('that was replaced is refused while the next one works', async () => {
    atNewPhone();
    const first = await issued({ ...sent, digits: 9 });
    const second = await issued({ ...sent, digits: 9 });
    expectInvalidGrant(await guess(first));
    expect((await guess(second)).status).toBe(200);
  });

  it('allows guesses again after the lifetime of the first code', async () => {
    atNewPhone();
    await guessWrongly(await issued(sent), GUESS_COUNT);
    service.clock.advance({ seconds: CODE_LIFETIME_SECONDS - 60 });
    expectInvalidGrant(await guess(await issued(sent)));
    service.clock.advance({ seconds: 60 });
    const code = await issued(sent);
    await guessWrongly(code, GUESS_COUNT - 1);
    expect((await guess(code)).status).toBe(200);
    await guessWrongly(await issued(sent), 1);
    expectInvalidGrant(await guess(await issued(sent)));
  });

  it('counts wrong guesses only: the recipient may redeem any number of codes within lifetime', async () => {
    atNewPhone();
    for (let signIn = 0; signIn < 2 * GUESS_COUNT; signIn++) expect((await guess(await issued(sent))).status).toBe(200);
    const code = await issued(sent);
    await guessWrongly(code, GUESS_COUNT);
    expectInvalidGrant(await guess(code));
  });

  it.each([
    ['client', { client_id: ACME_SITE }],
    ['organization', { organization_id: RIVAL }],
    ['grant', { grant_type: 'test_code_of_two_guesses', grant: 'test_code_of_two_guesses' }],
  ])('is neither used up nor replaced by requests for the same recipient at another %s', async (_, elsewhere) => {
    atNewPhone();
    const code = await issued({ ...sent, digits: 9 });
    await guessWrongly(code, 10, elsewhere);
    const other = await issued({ ...sent, digits: 9, ...elsewhere });
    expect((await guess(code)).status).toBe(200);
    expect((await guess(other, elsewhere)).status).toBe(200);
  });
});

describe('a code that ends with its caller', () => {
  const ofCaller = { grant_type: 'test_code_of_caller' };
  const issuedBy = async (token: string, more: object = {}) => {
    const body = { client_id: PUBLIC_SITE, grant: 'test_code_of_caller', ...more };
    return service.post(CODES_OF_CALLER, body, bearer(token));
  };

  it('gives a token of the customer that ends with the bearer token by which the customer issued it', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const { body } = await redeem((await issuedBy(access_token)).body.code, ofCaller);
    expect(body.entity_id).toBe(entity_id);
    const unredeemed = (await issuedBy(access_token)).body.code;
    expect(await infoStatus(service, body.access_token)).toBe(200);
    expect((await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
    expect(await infoStatus(service, body.access_token)).toBe(401);
    expectInvalidGrant(await redeem(unredeemed, ofCaller));
  });

  it('gives a token of the agent’s customer that ends with the bearer token of the agent', async () => {
    const agent = await issueAgentToken(service);
    const { entity_id } = await newCustomer(service);
    const { body } = await redeem((await issuedBy(agent, { customer_id: entity_id })).body.code, ofCaller);
    expect(body.entity_id).toBe(entity_id);
    const unredeemed = (await issuedBy(agent, { customer_id: entity_id })).body.code;
    expect(await infoStatus(service, body.access_token)).toBe(200);
    expect((await service.send('DELETE', '/v2/token', bearer(agent))).status).toBe(200);
    expect(await infoStatus(service, body.access_token)).toBe(401);
    expectInvalidGrant(await redeem(unredeemed, ofCaller));
  });

  it('is not issued without a caller: 500, and the log says why', async () => {
    const response = await service.post(CODES, { ...AT_ACME, grant: 'test_code_of_caller' });
    expectServerError(response, "declares endsWith 'caller', so OneTimeCodes.issue needs a caller");
  });

  it('is not issued by a customer for another one: 500, and the log says why', async () => {
    const { access_token } = await newCustomer(service);
    const { entity_id } = await newCustomer(service);
    const response = await issuedBy(access_token, { customer_id: entity_id });
    expectServerError(response, 'the code of a customer leads to another customer');
  });
});

describe('a code of a customer', () => {
  const issuedFor = async (grant: string, token: string): Promise<string> =>
    (await service.post(CODES_OF_CALLER, { client_id: PUBLIC_SITE, grant }, bearer(token))).body.code;

  it('that ends with the sessions gives no token after they have ended, and survives the logout of its caller', async () => {
    const ofSessions = { grant_type: 'test_code_of_sessions' };
    const { entity_id, access_token } = await newCustomer(service);
    const [first, second] = [
      await issuedFor('test_code_of_sessions', access_token),
      await issuedFor('test_code_of_sessions', access_token),
    ];
    expect((await redeem(first, ofSessions)).body.entity_id).toBe(entity_id);
    expect((await endSessions(service, access_token, {})).status).toBe(200);
    expectInvalidGrant(await redeem(second, ofSessions));
  });

  it('that ends with the sessions is not issued without a customer: 500, and the log says why', async () => {
    const response = await service.post(CODES, { ...AT_ACME, grant: 'test_code_of_sessions' });
    expectServerError(response, "declares endsWith 'sessions', so OneTimeCodes.issue needs a customer");
  });

  it('that ends with nothing gives a token after the sessions of the customer have ended', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const code = await issuedFor('test_code_of_printed_letter', access_token);
    expect((await endSessions(service, access_token, {})).status).toBe(200);
    const { status, body } = await redeem(code, { grant_type: 'test_code_of_printed_letter' });
    expect([status, body.entity_id]).toEqual([200, entity_id]);
  });

  it('is exported without its hash and content, and erased with the customer', async () => {
    const { entity_id, access_token } = await newCustomer(service);
    const code = await issuedFor('test_code_of_printed_letter', access_token);
    const { body, text } = await service.admin('GET', `/admin/customers/${entity_id}/export`);
    expect(body.tables.one_time_code).toEqual([
      expect.objectContaining({
        grant_type: 'test_code_of_printed_letter',
        client_id: PUBLIC_SITE,
        organization_id: ACME,
      }),
    ]);
    expect(text).not.toMatch(/hash|content|guesses/);
    expect(text).not.toContain(code);
    expect(await service.rowsOf(OneTimeCode).countBy({ entityId: entity_id })).toBe(1);
    expect((await service.erase(entity_id)).status).toBe(200);
    expect(await service.rowsOf(OneTimeCode).countBy({ entityId: entity_id })).toBe(0);
    expectInvalidGrant(await redeem(code, { grant_type: 'test_code_of_printed_letter' }));
  });
});

describe('the table of OneTimeCodes', () => {
  it('has neither a code nor a recipient nor a hash by which one of them could be found', async () => {
    const recipient = '+4915112345678';
    const codes = [await issued(), await issued({ recipient })];
    const stored = await everythingIn(service);
    const hashesOf = (text: string) =>
      ['sha1', 'sha256', 'md5'].map((algorithm) => createHash(algorithm).update(text).digest('hex'));
    for (const text of [...codes, recipient]) {
      expect(stored).not.toContain(`"${text}"`);
      for (const hash of hashesOf(text)) expect(stored).not.toContain(hash);
    }
    expect(stored).not.toContain(recipient);
  });

  it('has no expired row after a purge', async () => {
    await service.rowsOf(OneTimeCode).clear();
    for (const sent of [{}, { recipient: newPhone() }]) await issued(sent);
    service.clock.advance({ seconds: CODE_LIFETIME_SECONDS - 1 });
    expect((await purge(service))?.one_time_code).toBe(0);
    service.clock.advance({ seconds: 2 });
    expect((await purge(service))?.one_time_code).toBe(2);
  });
});
