import { generateKeyPairSync } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { claimsOf, pkce } from '../../support/agent-tokens.js';
import { JWT_BEARER, signIn } from '../../support/assertion-issuer.js';
import { bearer } from '../../support/authorization-headers.js';
import { BACKEND_CALLBACK } from '../../support/authorization-page.js';
import { identitiesOf } from '../../support/identities.js';
import { managerToken, managingRegistry } from '../../support/managed-customers.js';
import { temporaryFolder } from '../../support/project-files.js';
import { checkTypes, hasMypy, hasPython, runPython } from '../../support/python.js';
import { startScriptedServer } from '../../support/scripted-server.js';
import {
  ACME,
  ACME_AGENT,
  ACME_BACKEND,
  ACME_ORIGIN,
  ACME_SITE,
  BACKEND_SECRET,
  changed,
  RIVAL,
} from '../../support/test-registry.js';
import { authorizationCode, infoStatus, newCustomer, redeem } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

// cspell:ignore contextlib runpy getvalue splitlines fromkeys
const ISSUER = 'https://login.acme.example';
const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const jwks = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'key-1' }] };

/** The registry with a client that may export and erase, and whose page signs users in. */
function registry() {
  const managing = managingRegistry();
  const grants = { [JWT_BEARER]: { issuer: ISSUER, jwks } };
  const grant_types = ['cookie', 'agent_token', 'identity_token', JWT_BEARER];
  return {
    ...managing,
    organizations: changed(managing.organizations, [ACME], { grants }),
    clients: changed(changed(managing.clients, [ACME_SITE], { grant_types }), [ACME_BACKEND], {
      grant_types: ['client_credentials', 'agent_token'],
      agent: ACME_AGENT.email,
    }),
  };
}

describe.skipIf(!hasPython)('the Python examples of the guide for backends (skipped without Python)', () => {
  const service = useService({ registry: registry() });
  const folder = temporaryFolder('python-backend');

  let store: string;
  let number = 0;
  beforeEach(() => {
    store = join(folder, `tokens-${number++}.sqlite`);
  });

  /** Runs statements with a session of the store. */
  const withSession = (statements: string, given: object = {}) =>
    runPython(
      `import json, sqlite3, time
from agent_session import AgentSession
from token_store import TokenStore
from service_requests import ServiceError, is_temporary
store = TokenStore(given['store'])
session = AgentSession(given['url'], given['client'], given['secret'], store)
${statements}`,
      { url: service.url, client: ACME_BACKEND, secret: BACKEND_SECRET, store, ...given },
    );
  const signedIn = async () =>
    withSession("result = session.sign_in(given['code'], given['redirect_uri'])", {
      code: await authorizationCode(service),
      redirect_uri: BACKEND_CALLBACK,
    });

  describe('python/agent_session.py and python/token_store.py', () => {
    it('exchange the code of a sign-in, and store the tokens where only this user can read them', async () => {
      const agent = await signedIn();
      const tokens = await withSession('result = store.read()');
      expect(claimsOf(tokens.access_token).sub).toBe(agent);
      expect(statSync(store).mode & 0o077).toBe(0);
    });

    it('renew once for the parallel calls of two processes', async () => {
      await signedIn();
      const before = await withSession(
        "tokens = {**store.read(), 'expires_at': 0}\nstore.fill(tokens)\nresult = tokens",
      );
      const calls = `from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(10) as pool: result = list(pool.map(lambda _: session.token(), range(10)))`;
      const used = new Set((await Promise.all([withSession(calls), withSession(calls)])).flat());
      const after = await withSession('result = store.read()');
      expect([...used]).toEqual([after.access_token]);
      expect(after.refresh_token).not.toBe(before.refresh_token);
    });

    it('repeat the renewal of a process that crashed before it stored the new tokens', async () => {
      await signedIn();
      const statements = `store.fill({**store.read(), 'expires_at': 0})
try:
    store.update(lambda tokens: session._renew(tokens) and 1 / 0)
except ZeroDivisionError:
    crashed = store.read()['expires_at']
errors = []
session.start(lambda *error: errors.append(str(error)))
result = [crashed, store.read()['expires_at'] > time.time(), errors]`;
      expect(await withSession(statements)).toEqual([0, true, []]);
    });

    it('keep the old token while a renewal fails, and report that a person must sign in again', async () => {
      await signedIn();
      const statements = `tokens = {**store.read(), 'refresh_token': 'dev:unknown', 'expires_at': time.time() + 30}
store.fill(tokens)
errors = []
session.start(lambda error, seconds: errors.append([is_temporary(error), error.status, error.error]))
kept = session.token() == tokens['access_token']
try:
    session.token(tokens['access_token'])
except ServiceError as error:
    result = [kept, errors, str(error)]`;
      const expected = [true, [[false, 400, 'invalid_grant']]];
      const [kept, errors, message] = await withSession(statements);
      expect([kept, errors]).toEqual(expected);
      expect(message).toContain('no agent token: 400 invalid_grant');
    });

    it('keep the old token while another process holds the lock of the store', async () => {
      await signedIn();
      const statements = `store.fill({**store.read(), 'expires_at': time.time() + 30})
def update(change): raise sqlite3.OperationalError('database is locked')
store.update = update
result = session.token() == store.read()['access_token']`;
      expect(await withSession(statements)).toBe(true);
    });

    it('do not repeat the exchange of a code, and name the cause of the first failure', async () => {
      const server = await startScriptedServer(['closed', 400]);
      const statements = `try: session.sign_in('any', 'any')
except ServiceError as error: result = [str(error), is_temporary(error)]`;
      const message = 'no agent token: no response (RemoteDisconnected)';
      expect(await withSession(statements, { url: server.url })).toEqual([message, true]);
      expect(server.requests()).toBe(1);
    });

    it('report that no person has signed in yet', async () => {
      const statements = `try:
    session.token()
except LookupError as error:
    result = [str(error), is_temporary(error)]`;
      expect(await withSession(statements)).toEqual(['no agent token: a person must sign in first', false]);
    });
  });

  /** Runs statements with the customers of an agent that may export and erase. */
  const withCustomers = async (statements: string, given: object = {}) =>
    runPython(
      `import time
from customers import Customers
from service_requests import ServiceError
from sign_outs import SignOuts
class Session:
    def token(self, rejected=None): return given['agent'] if rejected else given.get('first', given['agent'])
customers = Customers(given['url'], given['client'], Session(), given.get('wait', 10))
sign_outs = SignOuts(given['path'], customers)
${statements}`,
      { url: service.url, client: ACME_SITE, agent: await managerToken(service), path: `${store}-sign-outs`, ...given },
    );

  describe('python/customers.py', () => {
    it('gets the same customer for 17 and "17", and another one for a prefixed id', async () => {
      const ids = "result = [customers.request_token(each)['entity_id'] for each in (17, '17', 'guest-17')]";
      const [number, text, prefixed] = await withCustomers(ids);
      expect(text).toBe(number);
      expect(prefixed).not.toBe(number);
    });

    it('sends no request for a user without an id', async () => {
      const count = await identitiesOf(service).count();
      const statements = `result = []
for each in (None, '', True, 1.5):
    try: customers.request_token(each)
    except TypeError as error: result.append(str(error))`;
      expect(await withCustomers(statements)).toEqual(Array(4).fill('user_id: no text and no integer'));
      expect(await identitiesOf(service).count()).toBe(count);
    });

    it('gets a new agent token after a 401, and a new customer token after a 401 of the API', async () => {
      const statements = `class Response:
    def __init__(self, status_code): self.status_code = status_code
seen = []
def call(token):
    seen.append(token)
    return Response(401 if len(seen) == 2 else 200)
statuses = [customers.call('user-1', call).status_code for _ in range(2)]
result = [statuses, [seen.index(token) for token in seen]]`;
      expect(await withCustomers(statements, { first: 'dev:x' })).toEqual([
        [200, 200],
        [0, 0, 2],
      ]);
    });

    it('does not give the cached token of user 1 for an id that only compares equal to 1', async () => {
      const statements = `class Response: status_code = 200
call = lambda user: customers.call(user, lambda token: Response())
call(1)
result = []
for each in (True, 1.0):
    try: result.append(call(each).status_code)
    except TypeError as error: result.append(str(error))`;
      expect(await withCustomers(statements)).toEqual(Array(2).fill('user_id: no text and no integer'));
    });

    it('checks the token of a page: valid, and of this organization', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      const check = (organization: string) =>
        withCustomers("result = customers.check(given['token'], given['organization'])", { token, organization });
      expect([await check(ACME), await check(RIVAL)]).toEqual([entity_id, null]);
      await service.send('DELETE', '/v2/customer/token', bearer(token));
      expect(await check(ACME)).toBeNull();
    });

    it('treats a malformed token of a page as invalid, without a request', async () => {
      const statements = `customers.url = 'http://127.0.0.1:1'
result = [customers.check(each, 'any') for each in given['tokens']]`;
      const tokens = ['dev:a\nb', 'dev:…', 'dev: x', 'x'.repeat(20_000), '', null, 17];
      expect(await withCustomers(statements, { tokens })).toEqual(tokens.map(() => null));
    });

    it('does not show a malformed agent token in its error, and reports a permanent error', async () => {
      const statements = `from service_requests import is_temporary
try: customers.request_token('user-1')
except ValueError as error: result = [str(error), is_temporary(error)]`;
      expect(await withCustomers(statements, { agent: 'dev:secret\n' })).toEqual(['malformed token', false]);
    });

    it('ends the token of one sign-in, and moves the customer of a user to a new device', async () => {
      const { verifier, asked } = pkce();
      const statements = `one, other = (customers.request_token('user-6') for _ in range(2))
customers.end_token(one['access_token'])
customers.end_token(one['access_token'])
result = [one, other, customers.transfer_token(one['entity_id'], given['client'], given['challenge'])]`;
      const [one, other, code] = await withCustomers(statements, { challenge: asked.code_challenge });
      expect(await infoStatus(service, one.access_token)).toBe(401);
      expect(await infoStatus(service, other.access_token)).toBe(200);
      expect((await redeem(service, code, { code_verifier: 'x'.repeat(43) })).status).toBe(400);
      expect((await redeem(service, code, { code_verifier: verifier })).body.entity_id).toBe(one.entity_id);
    });

    it('treats a token that the service does not accept as ended', async () => {
      expect(await withCustomers("result = customers.end_token('dev:x')")).toBeNull();
    });

    it('forgets the cached token of a user who is erased', async () => {
      const statements = `class Response: status_code = 200
for user in ('user-7', 'user-8'): customers.call(user, lambda token: Response())
customers.erase(customers.customer_id('user-7'))
result = list(customers._cache)`;
      expect(await withCustomers(statements)).toEqual(['user-8']);
    });

    it('exports a user, ends the sessions and erases the data, also a second time', async () => {
      const statements = `token = customers.request_token('user-2')
tables = customers.export('user-2')
customers.sign_out_everywhere('user-2')
customer_id = customers.customer_id('user-2')
for _ in range(2): customers.erase(customer_id)
customers.sign_out_everywhere('user-2')
result = [token, tables, customers.customer_id('user-2')]`;
      const [{ access_token, entity_id }, { customer }, erased] = await withCustomers(statements);
      expect(erased).toBeNull();
      expect(customer).toEqual([expect.objectContaining({ entity_id })]);
      expect(await infoStatus(service, access_token)).toBe(401);
      const again = await withCustomers("result = customers.request_token('user-2')");
      expect(again.entity_id).not.toBe(entity_id);
    });

    it('reports status, hint and request id of an error, and a missing response', async () => {
      const statements = `from service_requests import is_temporary
result = []
for customers.url in (customers.url, 'http://127.0.0.1:1'):
    try: customers.export('a\\nb')
    except ServiceError as error: result.append([error.status, error.hint, error.request_id is not None, is_temporary(error)])`;
      const [response, missing] = await withCustomers(statements, { wait: 1 });
      expect(response).toEqual([400, expect.stringMatching(/^external_id: must be 1 to 255/), true, false]);
      expect(missing).toEqual([null, null, false, true]);
    });

    it('repeats a request after a timeout within the longest wait, and reports a refused connection', async () => {
      const server = await startScriptedServer(['silent', 200, 'silent', 'silent']);
      const statements = `import contextlib, io, service_requests
service_requests.TIMEOUT_SECONDS, service_requests.DEFAULT_DELAY_SECONDS = 0.5, 0.1
service_requests.MIN_TIMEOUT_SECONDS = 0.2
send = lambda url=given['server']: service_requests.send('GET', url, 'test', given['wait'])
result = [send()]
lines = io.StringIO()
with contextlib.redirect_stderr(lines):
    for url in (given['server'], 'http://127.0.0.1:1'):
        started = time.monotonic()
        try: send(url)
        except ServiceError as error: service_requests.log_error(error)
        result.append(time.monotonic() - started < given['wait'] + 0.2)
    service_requests.log_error(ValueError())
result.append(lines.getvalue().splitlines())`;
      expect(await withCustomers(statements, { server: server.url, wait: 1 })).toEqual([
        {},
        true,
        true,
        [
          'temporary error: test: no response (TimeoutError)',
          'temporary error: test: no response (ConnectionRefusedError)',
          'permanent error: ValueError',
        ],
      ]);
      expect(server.requests()).toBe(4);
    });
  });

  it.skipIf(!hasMypy)('all Python examples have types that mypy accepts (skipped without mypy)', async () => {
    expect(await checkTypes()).toMatch(/^Success: no issues found in \d+ source files\n$/);
  });

  it('python/first_token.py prints the same customer in each run, with an agent token by client_credentials', async () => {
    const statements = `import contextlib, io, os, runpy
os.environ.update(given['environment'])
lines = io.StringIO()
with contextlib.redirect_stdout(lines):
    for _ in range(2): runpy.run_module('first_token')
result = lines.getvalue().split()`;
    const environment = { SERVICE: service.url, CLIENT: ACME_BACKEND, CLIENT_SECRET: BACKEND_SECRET };
    const words = await runPython(statements, { environment });
    expect(words).toEqual(['customer', expect.stringMatching(/^[\w-]{36}$/), 'customer', words[1]]);
  });

  describe('python/sign_outs.py', () => {
    it('logs a row that can never succeed once, and drops it', async () => {
      const statements = `import contextlib, io
lines = io.StringIO()
with contextlib.redirect_stderr(lines):
    sign_outs.record('a', 'dev:a\\nb', time.time() + 600)
    sign_outs.end_sign_in('a')
    sign_outs.lost_device('a\\nb', lambda: None)
    while sign_outs._execute('SELECT id FROM issued_token UNION ALL SELECT id FROM lost_device'): time.sleep(0.05)
result = lines.getvalue().splitlines()`;
      expect(await withCustomers(statements)).toEqual([
        'permanent error: dropped row 1 of issued_token: malformed token',
        expect.stringMatching(/^permanent error: dropped row 1 of lost_device: end_sessions: 400 invalid_request, /),
      ]);
    });

    it('keeps a row whose error the operator can end', async () => {
      const statements = `from sign_outs import is_final
def failed(status, name):
    error = ServiceError('test')
    error.status, error.error = status, name
    return error
errors = [(401, 'invalid_client'), (403, 'insufficient_scope'), (400, 'unauthorized_client'), (429, None), (503, None)]
result = [is_final(failed(*each)) for each in [*errors, (400, 'invalid_request'), (404, None)]]`;
      expect(await withCustomers(statements)).toEqual([...Array(5).fill(false), true, true]);
    });

    it('stores no sign-out without a user or a sign-in', async () => {
      const statements = `result = []
for add in (sign_outs.end_sign_in, lambda value: sign_outs.lost_device(value, lambda: None)):
    try: add(None)
    except TypeError as error: result.append(str(error))`;
      expect(await withCustomers(statements)).toEqual(['sign_in: no text', 'user_id: no text and no integer']);
    });
  });

  describe('python/page_routes.py', () => {
    it('gives each sign-in a token of its own, replaces it on request, and separates a token for a move', async () => {
      const statements = `from page_routes import chat_token
one, two = ({'user_id': 'user-3', 'sign_in': each} for each in 'ab')
ask = lambda session, **more: chat_token(customers, sign_outs, session, given['origin'], **more)
first, again, other = ask(one), ask(one), ask(two)
separate, kept = ask(one, query={'separate': ''}), ask(one)
renewed = ask(one, query={'renew': ''})
result = [[each[2]['access_token'] for each in (first, again, other, separate, kept, renewed)], first]`;
      const [tokens, [status, headers, body]] = await withCustomers(statements, { origin: ACME_ORIGIN });
      const [first, again, other, separate, kept, renewed] = tokens;
      expect([again, kept]).toEqual([first, first]);
      expect(new Set([first, other, separate, renewed]).size).toBe(4);
      expect(status).toBe(200);
      expect(body.expires_in).toBeGreaterThan(28_000);
      expect(headers['Cache-Control']).toBe('no-store');
      expect(await infoStatus(service, first)).toBe(200);
    });

    it('gives each user of one session a token of that user, also if the first one returns', async () => {
      const statements = `from page_routes import chat_token
session, result = {'sign_in': 'a'}, []
for user in ('user-6', 'user-7', 'user-6'):
    session['user_id'] = user
    body = chat_token(customers, sign_outs, session, 'any')[2]
    result.append([body, customers.request_token(user)['entity_id']])`;
      for (const [{ access_token, entity_id }, customer] of await withCustomers(statements)) {
        expect(claimsOf(access_token).sub).toBe(customer);
        expect(entity_id).toBe(customer);
      }
    });

    it('gives no token that was requested for the user before in the same session', async () => {
      const statements = `from page_routes import chat_token
session = {'user_id': 'user-8', 'sign_in': 'a'}
request_token = customers.request_token
def change_user(user_id):
    session['user_id'] = given['next']
    return request_token(user_id)
customers.request_token = change_user
status, headers, body = chat_token(customers, sign_outs, session, 'any', on_error=lambda error: None)
result = [status, headers['Retry-After'], 'access_token' in body, 'chat_token' in session]`;
      for (const next of ['user-9', null])
        expect(await withCustomers(statements, { next })).toEqual([503, '2', false, false]);
    });

    it('responds with 401 if a sign-out clears the session at the same time', async () => {
      const statements = `from page_routes import chat_token
class Cleared(dict):
    def get(self, name, default=None):
        value = super().get(name, default)
        self.clear()
        return value
result = chat_token(customers, sign_outs, Cleared(user_id='user-9', sign_in='a'), 'any')[0]`;
      expect(await withCustomers(statements)).toBe(401);
    });

    it('gives no token to a session that a slow request stored again after the sign-out', async () => {
      const statements = `from page_routes import chat_token
ask = lambda session: chat_token(customers, sign_outs, session, 'any', query={'renew': ''})
session = {'user_id': 'user-9', 'sign_in': 'a'}
copy = dict(session)
sign_outs.end_sign_in('a')
result = [ask(copy)[0], ask({'user_id': 'user-9'})[0], 'chat_token' in copy]`;
      expect(await withCustomers(statements)).toEqual([401, 500, false]);
    });

    it('lets the page read the 401 of a visitor, and responds to a preflight and to errors', async () => {
      const statements = `from page_routes import chat_token
ask = lambda user, **more: chat_token(customers, sign_outs, {'user_id': user, 'sign_in': 'a'}, 'https://page.example', on_error=lambda error: None, **more)
result = [ask(None), ask(None, method='OPTIONS'), ask('a\\nb')]
customers.url = 'http://127.0.0.1:1'
result.append(ask('user-4'))`;
      const responses = await withCustomers(statements, { wait: 1 });
      expect(responses.map(([status]: [number]) => status)).toEqual([401, 204, 500, 503]);
      for (const [, headers] of responses) expect(headers['Access-Control-Allow-Origin']).toBe('https://page.example');
      expect(responses[3][1]['Retry-After']).toBe('2');
    });

    it('responds with 503 while a renewal of the agent token goes on, and names the reason', async () => {
      const statements = `import page_routes
page_routes.MAX_WAIT_SECONDS = 0.1
Session.token = lambda self, rejected=None: time.sleep(0.5)
errors = []
status = page_routes.chat_token(customers, sign_outs, {'user_id': 'user-9', 'sign_in': 'a'}, 'any', on_error=lambda error: errors.append(str(error)))[0]
result = [status, errors]`;
      expect(await withCustomers(statements)).toEqual([503, ['no result within 0.1 s']]);
    });

    it('signs no assertion for a user without an exact id', async () => {
      const statements = `from page_routes import assertion
settings = dict.fromkeys(('issuer', 'audience', 'client_id', 'organization_id', 'key_id', 'private_key'), 'any')
result = []
for each in (True, 1.5, ''):
    try: assertion({'user_id': each}, **settings)
    except TypeError as error: result.append(str(error))`;
      expect(await withCustomers(statements)).toEqual(Array(3).fill('user_id: no text and no integer'));
    });

    it('signs an assertion that the service accepts once, and none without a session', async () => {
      const statements = `from page_routes import assertion
settings = given['settings']
result = [assertion({'user_id': 'user-5'}, **settings), assertion({}, **settings)]`;
      const ids = { client_id: ACME_SITE, organization_id: ACME, key_id: 'key-1' };
      const settings = {
        ...ids,
        issuer: ISSUER,
        audience: 'https://auth.example',
        private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
      };
      const [[status, headers, { assertion }], [signedOut]] = await withCustomers(statements, { settings });
      expect([status, headers['Cache-Control'], signedOut]).toEqual([200, 'no-store', 401]);
      const { client_id } = ids;
      const statuses = [
        (await signIn(service, assertion, { client_id })).status,
        (await signIn(service, assertion, { client_id })).status,
      ];
      expect(statuses).toEqual([200, 400]);
    });
  });
});
