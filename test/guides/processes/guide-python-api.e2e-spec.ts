import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { listen } from '../../support/listen.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { hasPython, runPython, startPython } from '../../support/python.js';
import { FEED_SECRET, FEED_SERVERS } from '../../support/revocation-feed.js';
import { ACME, testRegistry } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';

const ORIGIN = 'http://localhost:8080';
const id = 'customer-server';

describe.skipIf(!hasPython)('the Python examples of the guide for resource servers (skipped without Python)', () => {
  const service = useService({ registry: { ...testRegistry(), resource_servers: FEED_SERVERS } });
  let api: Awaited<ReturnType<typeof startPython>>;
  let agentToken: string;
  let environment: Record<string, string>;
  beforeAll(async () => {
    agentToken = await issueAgentToken(service);
    environment = {
      AUTH_URL: 'https://auth.example',
      JWKS_URL: `${service.url}/.well-known/jwks.json`,
      REVOCATIONS_URL: `${service.managementUrl}/oauth2/revocations`,
      INTROSPECTION_URL: `${service.managementUrl}/oauth2/introspect`,
      RESOURCE_SERVER_ID: id,
      RESOURCE_SERVER_SECRET: FEED_SECRET,
      PORT: '0',
    };
    api = await startPython('chat_api.py', environment);
  });
  afterAll(() => api?.process.signal('SIGTERM'));

  const chats = (token: string | undefined, { organization = ACME, headers = {}, method = 'GET' } = {}) =>
    request(`${api.url}/organizations/${organization}/chats`, {
      method,
      headers: { ...(token && bearer(token)), ...headers },
    });
  const statusOf = async (token: string) => (await chats(token)).status;
  const until = (token: string, status: number) =>
    vi.waitFor(async () => expect(await statusOf(token)).toBe(status), { timeout: 60_000, interval: 200 });
  async function tokenByAgent(more: object = {}) {
    const { body } = await service.post(TOKEN, agentTokenBody(more), bearer(agentToken));
    return { token: body.access_token as string, customer: body.entity_id as string };
  }

  describe('python/chat_api.py', () => {
    it('names the customer, or the agent that speaks for it, in the audit', async () => {
      const { access_token, entity_id } = await newCustomer(service);
      const { token, customer } = await tokenByAgent();
      expect((await chats(access_token)).body).toEqual({ customer: entity_id, organization: ACME });
      expect((await chats(token)).body).toEqual({ customer, organization: ACME });
      const { sub } = claimsOf(agentToken);
      await vi.waitFor(() => {
        expect(api.process.stderr).toContain(`audit: customer ${entity_id} read chats (cookie)\n`);
        expect(api.process.stderr).toContain(`audit: agent ${sub} for customer ${customer} read chats (agent_token)\n`);
      });
    });

    it('rejects agent tokens, damaged tokens and other texts with 401', async () => {
      const { access_token: token } = await newCustomer(service);
      const [head = '', claims = '', signature = ''] = token.split('.');
      const [, , other = ''] = (await newCustomer(service)).access_token.split('.');
      const damaged = [`${head}.${claims}.${other}`, `${head}.${claims}.`, `${token}x${signature}`];
      const none = [head, Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url')].map((each) =>
        [each, claims, ''].join('.'),
      );
      for (const wrong of [agentToken, ...damaged, ...none, 'dev:x', 'x', `x${'y'.repeat(9_000)}`]) {
        const { status, headers } = await chats(wrong);
        expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer error="invalid_token"']);
      }
      const { status, headers, body } = await chats(undefined);
      expect([status, headers.get('www-authenticate'), body]).toEqual([401, 'Bearer', {}]);
    });

    it('responds with 404 for another organization, and lets the pages of its origins read each response', async () => {
      const { access_token } = await newCustomer(service);
      expect((await chats(access_token, { organization: 'another' })).status).toBe(404);
      const headers = { origin: ORIGIN };
      const responses = [
        await chats(undefined, { headers }),
        await chats(undefined, { headers, method: 'OPTIONS' }),
        await chats(undefined, { headers: { origin: 'https://other.example' } }),
      ];
      expect(responses.map(({ status }) => status)).toEqual([401, 204, 401]);
      const origins = responses.map((each) => each.headers.get('access-control-allow-origin'));
      expect(origins).toEqual([ORIGIN, ORIGIN, null]);
    });

    it('notices the end of a session, of what was made with it, of a generation and of the agent', async () => {
      const first = await newCustomer(service);
      const moved = (await redeem(service, await transferToken(service, first.access_token))).body.access_token;
      const sessions = await newCustomer(service);
      const [ended, kept] = [await tokenByAgent({ external_id: 'user-1' }), await newCustomer(service)];
      const tokens = [first.access_token, moved, sessions.access_token, ended.token, kept.access_token];
      expect(await Promise.all(tokens.map(statusOf))).toEqual([200, 200, 200, 200, 200]);
      await service.send('DELETE', '/v2/customer/token', bearer(first.access_token));
      await until(first.access_token, 401);
      await until(moved, 401);
      await service.post('/v2/customer/end_sessions', {}, bearer(sessions.access_token));
      await until(sessions.access_token, 401);
      await service.send('DELETE', '/v2/token', bearer(agentToken));
      await until(ended.token, 401);
      expect(await statusOf(kept.access_token)).toBe(200);
      agentToken = await issueAgentToken(service);
    });
  });

  /** Runs statements with a feed that is not followed, but has these entries. */
  const withEntries = (entries: object[], statements: string, given: object = {}) =>
    runPython(
      `from token_verifier import RevocationFeed
feed = RevocationFeed('http://localhost', 'id', 'secret')
feed._synced_at = __import__('token_verifier').seconds()
for entry in given['entries']: feed._add(entry)
${statements}`,
      { entries, ...given },
    );
  const inFuture = { expires_at: '2099-01-01T00:00:00.000Z' };

  describe('the feed of python/token_verifier.py', () => {
    it('sends its requests on one connection', async () => {
      const sockets = new Set();
      const server = createServer(({ socket }, response) => {
        sockets.add(socket);
        response.end(JSON.stringify({ revocations: [], cursor: 'x', complete: true }));
      });
      onTestFinished(() => void server.close());
      const statements = `from token_verifier import RevocationFeed
feed = RevocationFeed(given['url'], 'id', 'secret')
for _ in range(3): feed._read_page()
result = feed.is_current`;
      expect(await runPython(statements, { url: await listen(server) })).toBe(true);
      expect(sockets.size).toBe(1);
    });

    it('applies entries of each kind only to the tokens that they end', async () => {
      const forever = { issued_before: '9999-12-31T00:00:00.000Z', ...inFuture };
      const entries = [
        { kind: 'token', value: 'token-1', ...forever },
        { kind: 'session', value: 'session-1', epoch: 2, ...inFuture },
        { kind: 'session', value: 'session-1', epoch: 1, ...inFuture },
        { kind: 'client', value: 'client-1', issued_before: '2026-01-01T00:00:00.500Z', ...inFuture },
        { kind: 'client', value: 'client-2', issued_before: '2026-01-01T00:00:00.000Z', ...inFuture },
        { kind: 'organization', value: 'tenant-1', issued_before: '2026-01-01T00:00:00.500Z', ...inFuture },
        { kind: 'subject', value: 'sub-1', generation: 2, ...inFuture },
        { kind: 'subject', value: 'sub-1', generation: 1, ...inFuture },
      ];
      const usual = { jti: 'other', sub: 'other', client_id: 'other', organization_id: 'other', iat: 1_767_225_600 };
      const act = (changes: object) => ({ act: { sub: 'other', sid: 'other', ep: 1, ...changes } });
      const ended = [
        { jti: 'token-1' },
        { sid: 'session-1' },
        { sid: 'session-1', ep: 1 },
        { client_id: 'client-1' },
        { client_id: 'client-2' },
        { organization_id: 'tenant-1' },
        { sub: 'sub-1' },
        { sub: 'sub-1', gen: 1 },
        act({ sid: 'session-1' }),
        act({ sid: 'session-1', ep: undefined }),
      ];
      const valid = [
        {},
        { jti: 'session-1' },
        { sid: 'session-1', ep: 2 },
        { sid: 'session-2', ep: 1 },
        { sid: 'token-1', ep: 1 },
        { client_id: 'client-1', iat: 1_767_225_601 },
        { organization_id: 'tenant-1', iat: 1_767_225_601 },
        { sub: 'sub-1', gen: 2 },
        { sub: 'token-1', gen: 1 },
        act({}),
        act({ sid: 'session-1', ep: 2 }),
        act({ sid: 'token-1' }),
        act({ sub: 'sub-1' }),
      ];
      const tokens = [...ended, ...valid].map((claims) => ({ ...usual, ...claims }));
      const statements = `result = [[token for token in given['tokens'] if feed.has_ended(token)], feed.is_current]`;
      expect(await withEntries(entries, statements, { tokens })).toEqual([tokens.slice(0, ended.length), true]);
    });

    it.each([
      ['a kind', { kind: 'other', value: 'x', issued_before: '2026-01-01T00:00:00.000Z', ...inFuture }],
      ['a field', { kind: 'subject', value: 'x', generation: 1, only: 'x', ...inFuture }],
      ['the limit of another kind', { kind: 'client', value: 'x', generation: 1, ...inFuture }],
      ['the limit of a subject in a session', { kind: 'session', value: 'x', generation: 1, ...inFuture }],
      ['no limit', { kind: 'session', value: 'x', ...inFuture }],
    ])('is not current after an entry with %s that it does not know', async (_, entry) => {
      expect(await withEntries([entry], 'result = feed.is_current')).toBe(false);
    });

    it('counts the age of the list from the request, less the Age of a cache, and waits for a third of its age', async () => {
      const statements = `import token_verifier, requests
now = token_verifier.seconds()
token_verifier.seconds = lambda: now
waits = []
def post(_, url, form, **options):
    global now
    now += given['seconds']
    waits.append([form['wait'], options['headers']['Cache-Control']])
    response = requests.Response()
    response.status_code = 200
    response.headers['Age'] = str(given['age'])
    response._content = b'{"revocations": [], "cursor": "x", "complete": true}'
    return response
requests.Session.post = post
for _ in range(2): feed._read_page()
current = feed.is_current
now += 60 - given['seconds'] - given['age']
at_the_end = feed.is_current
now += 0.1
result = [current, at_the_end, feed.is_current, waits]`;
      const waits = [
        ['0', 'no-cache'],
        ['20', 'no-cache'],
      ];
      const given = { seconds: 31, age: 10 };
      expect(await withEntries([], statements, given)).toEqual([true, true, false, waits]);
    });

    it('is not current if the list is full, if it is too old, or if the clock was set back', async () => {
      const entry = { kind: 'subject', value: 'x', generation: 1, ...inFuture };
      const full = `import token_verifier
token_verifier.MAX_ENTRIES = 1
feed._add({**given['entries'][0], 'generation': 2})
before = feed.is_current
feed._add({**given['entries'][0], 'value': 'y'})
result = [before, feed.is_current]`;
      expect(await withEntries([entry], full)).toEqual([true, false]);
      expect(await withEntries([], 'feed._synced_at -= 61\nresult = feed.is_current')).toBe(false);
      const setBack = 'feed._purge()\nfeed._purged_at += 61\nresult = feed.is_current';
      expect(await withEntries([], setBack)).toBe(false);
    });

    it('forgets entries a minute after their end', async () => {
      const entry = { kind: 'subject', value: 'x', generation: 1, expires_at: '2026-01-01T00:00:00.000Z' };
      const statements = `import time
from datetime import datetime, timezone
added = len(feed._ended)
for key in feed._ended: feed._ended[key] = (1, time.time() - 59)
feed._purge()
kept = len(feed._ended)
for key in feed._ended: feed._ended[key] = (1, time.time() - 61)
feed._purged_at -= 61
feed._purge()
result = [added, kept, len(feed._ended)]`;
      expect(await withEntries([entry], statements)).toEqual([1, 1, 0]);
    });

    it.each([
      ['hours of errors', { failures: 1_100, status: 503 }],
      ['an entry whose end is no time', { body: { revocations: [{ kind: 'token', expires_at: 5 }] } }],
      ['a page that is no object', { body: [] }],
      ['a Retry-After of years', { status: 503, headers: { 'Retry-After': '99999999999' } }],
    ])('goes on after %s, with pauses of at most a minute', async (_, response) => {
      const given = { failures: 1, status: 200, headers: {}, body: {}, ...response };
      const statements = `import logging, time
import requests
from token_verifier import RevocationFeed
logging.disable()
class End(BaseException): pass
delays = []
def sleep(seconds):
    delays.append(seconds)
    if len(delays) > given['failures']: raise End
def post(*_, **__):
    response = requests.Response()
    response.status_code, response.headers, body = given['status'], given['headers'], given['body']
    if len(delays) == given['failures']:
        response.status_code, body = 200, {'revocations': [], 'cursor': 'x', 'complete': True}
    response._content = json.dumps(body).encode()
    return response
requests.Session.post, time.sleep = post, sleep
feed = RevocationFeed('http://localhost', 'id', 'secret')
try: feed._follow()
except End: result = [feed.is_current, max(delays) <= 60, len(delays)]`;
      expect(await runPython(statements, given)).toEqual([true, true, given.failures + 1]);
    });

    it('logs why the list was not read, and names it in the error of wait_until_read', async () => {
      const statements = `import logging, time
from token_verifier import RevocationFeed
lines = []
class Lines(logging.Handler):
    def emit(self, record): lines.append(record.getMessage())
logging.getLogger().addHandler(Lines())
feed = RevocationFeed(given['url'], given['id'], 'another-secret')
feed.start()
while not lines: time.sleep(0.05)
try: feed.wait_until_read(0)
except TimeoutError as error: result = [str(error), lines[0]]`;
      const why = expect.stringMatching(/^the revocations were not read: HTTPError\('401 .*Unauthorized/);
      expect(await runPython(statements, { url: environment.REVOCATIONS_URL, id })).toEqual([why, why]);
    });
  });

  /** A verifier that has fetched the keys, and the statements after it. */
  const verifying = (statements: string, given: object, feed = 'None') =>
    runPython(
      `import time, requests, token_verifier
from token_verifier import InvalidToken, NotChecked, RevocationFeed, TokenVerifier
def outcome(token):
    try: return verifier.verify(token)['sub']
    except (InvalidToken, NotChecked) as error: return type(error).__name__
verifier = TokenVerifier('https://auth.example', given['jwks'], ${feed})
${statements}`,
      { jwks: environment.JWKS_URL, ...given },
    );

  describe('python/token_verifier.py', () => {
    it('accepts known keys while the keys cannot be fetched, for an hour, and decides nothing without keys', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      const statements = `
verifier.jwks_url, url = 'http://127.0.0.1:1', verifier.jwks_url
first = outcome(given['token'])
verifier.jwks_url, verifier._failed_at = url, 0
known = outcome(given['token'])
verifier.jwks_url = 'http://127.0.0.1:1'
verifier._fetched_at -= 3000
during_outage = outcome(given['token'])
verifier._fetched_at -= 700
result = [first, known, during_outage, outcome(given['token'])]`;
      const expected = ['NotChecked', entity_id, entity_id, 'NotChecked'];
      expect(await verifying(statements, { token })).toEqual(expected);
    });

    it('accepts a known key while another thread waits for newer keys', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      const statements = `
import threading
verifier.fetch_keys()
verifier._fetched_at -= 600
verifier._lock.acquire()
outcomes = []
thread = threading.Thread(target=lambda: outcomes.append(outcome(given['token'])), daemon=True)
thread.start()
thread.join(5)
result = outcomes`;
      expect(await verifying(statements, { token })).toEqual([entity_id]);
    });

    it('fetches the keys again for an unknown key, at most every 30 s, and decides nothing in between', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      const statements = `
verifier.fetch_keys()
verifier._keys = {}
paused = outcome(given['token'])
try: verifier.verify(given['token'])
except NotChecked as error: retry_after = error.retry_after
verifier._fetched_at -= 31
result = [paused, 25 < retry_after <= 30, outcome(given['token'])]`;
      expect(await verifying(statements, { token })).toEqual(['NotChecked', true, entity_id]);
    });

    it('rejects a token of a key that a later response does not have, and many of them cause one fetch', async () => {
      const forgedOf = (kid: string) =>
        `${Buffer.from(JSON.stringify({ typ: 'at+jwt', alg: 'ES256', kid })).toString('base64url')}.e30.AAAA`;
      const forged = Array.from({ length: 200 }, (_, index) => forgedOf(`key-${index}`));
      const statements = `
fetches = []
get = requests.Session.get
def counting(*parameters, **options):
    fetches.append(1)
    return get(*parameters, **options)
requests.Session.get = counting
verifier.fetch_keys()
verifier._fetched_at -= 31
first = outcome(given['forged'][0])
others = {outcome(each) for each in given['forged'][1:]}
verifier._fetched_at += 31
result = [first, list(others), outcome(given['forged'][-1]), len(fetches), len(verifier._unknown)]`;
      const expected = ['InvalidToken', ['NotChecked'], 'InvalidToken', 2, 100];
      expect(await verifying(statements, { forged })).toEqual(expected);
    });

    it('uses keys of a cache only as long as without the cache', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      const statements = `
get = requests.Session.get
def cached(*parameters, headers, **options):
    response = get(*parameters, headers=headers, **options)
    response.headers['Age'] = str(given['age'])
    return response
requests.Session.get = cached
verifier.fetch_keys()
before = outcome(given['token'])
verifier.jwks_url = 'http://127.0.0.1:1'
verifier._fetched_at -= 3600 - given['age']
result = [before, outcome(given['token'])]`;
      expect(await verifying(statements, { token, age: 290 })).toEqual([entity_id, 'NotChecked']);
    });

    it('accepts an iat that is 30 s ahead, and no expired token', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      service.clock.advance({ seconds: 25 });
      const ahead = (await newCustomer(service)).access_token;
      service.clock.advance({ seconds: 25 });
      const tooFar = (await newCustomer(service)).access_token;
      service.clock.reset();
      service.clock.advance({ seconds: -28_800 });
      const expired = (await newCustomer(service)).access_token;
      service.clock.reset();
      const statements = "result = [outcome(each) for each in given['tokens']]";
      const tokens = [token, ahead, tooFar, expired];
      const notInvalid = expect.not.stringMatching('InvalidToken');
      const expected = [entity_id, notInvalid, 'InvalidToken', 'InvalidToken'];
      expect(await verifying(statements, { tokens })).toEqual(expected);
    });

    it('decides nothing while the list of ended tokens is too old, unless it accepts this and the list was read', async () => {
      const { access_token: token, entity_id } = await newCustomer(service);
      const statements = `
rejected = outcome(given['token'])
verifier.accepts_stale = True
unread = outcome(given['token'])
verifier.feed.was_read.set()
result = [rejected, unread, outcome(given['token'])]`;
      const feed = "RevocationFeed('http://127.0.0.1:1', 'id', 'secret')";
      expect(await verifying(statements, { token }, feed)).toEqual(['NotChecked', 'NotChecked', entity_id]);
    });
  });

  it('python/introspection.py returns the claims of a valid token, and nothing for an ended one', async () => {
    const { access_token: token, entity_id } = await newCustomer(service);
    const ask = () =>
      runPython(
        `import os
os.environ.update(given['environment'])
from introspection import introspect
result = introspect(given['token'])`,
        { token, environment },
      );
    expect(await ask()).toMatchObject({ sub: entity_id, gty: 'cookie' });
    await service.send('DELETE', '/v2/customer/token', bearer(token));
    expect(await ask()).toBeNull();
  });
});
