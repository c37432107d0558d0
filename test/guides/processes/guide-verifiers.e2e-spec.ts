import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { agentTokenBody, claimsOf } from '../../support/agent-tokens.js';
import { bearer } from '../../support/authorization-headers.js';
import { TOKEN } from '../../support/cookie-grant.js';
import { listen } from '../../support/listen.js';
import { issueAgentToken } from '../../support/operator-commands.js';
import { temporaryFolder } from '../../support/project-files.js';
import { FEED_SECRET, FEED_SERVERS } from '../../support/revocation-feed.js';
import { ACME, testRegistry } from '../../support/test-registry.js';
import { request } from '../../support/test-service.js';
import { newCustomer } from '../../support/transfers.js';
import { useService } from '../../support/use-service.js';
import { startVerifierProgram, VERIFIER_PROGRAMS } from '../../support/verifier-programs.js';

type Api = Awaited<ReturnType<typeof startVerifierProgram>>;

const PAGE = { revocations: [], cursor: 'x', complete: true };
const IN_FUTURE = { expires_at: '2099-01-01T00:00:00.000Z' };

interface Response {
  status?: number;
  headers?: Record<string, string>;
  body?: object;
}

/** A server that responds to each request as a function of its parameters, in the URL or in a form, says. */
async function serve(respond: (parameters: URLSearchParams) => Response): Promise<string> {
  const server = createServer(async (incoming, outgoing) => {
    const query = new URL(incoming.url ?? '', 'http://any').search;
    const parameters = new URLSearchParams(incoming.method === 'POST' ? await text(incoming) : query);
    const { status = 200, headers = {}, body = PAGE } = respond(parameters);
    outgoing.writeHead(status, headers).end(JSON.stringify(body));
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return listen(server);
}

describe.each(VERIFIER_PROGRAMS)('the example API in $language (skipped without its compiler)', (example) => {
  describe.runIf(example.isPossible)('with the service', () => {
    const folder = temporaryFolder(example.language);
    const service = useService({ registry: { ...testRegistry(), resource_servers: FEED_SERVERS } });
    let command: ReturnType<typeof example.build>;
    let environment: Record<string, string>;
    let agentToken: string;
    let shared: Api;
    const started: Api['process'][] = [];

    /** Starts a process that ends with its test. */
    async function start(changes: Record<string, string> = {}): Promise<Api> {
      const api = await startVerifierProgram(command, { ...environment, ...changes });
      started.push(api.process);
      return api;
    }
    beforeAll(async () => {
      command = example.build(folder);
      agentToken = await issueAgentToken(service);
      environment = {
        AUTH_URL: 'https://auth.example',
        JWKS_URL: `${service.url}/.well-known/jwks.json`,
        REVOCATIONS_URL: `${service.managementUrl}/oauth2/revocations`,
        RESOURCE_SERVER_ID: 'customer-server',
        RESOURCE_SERVER_SECRET: FEED_SECRET,
      };
      shared = await start();
      started.length = 0;
    });
    afterEach(() => {
      for (const each of started.splice(0)) each.signal('SIGKILL');
    });
    afterAll(() => shared?.process.signal('SIGKILL'));

    const chats = (token: string | undefined, { api = shared, organization = ACME } = {}) =>
      request(`${api.url}/organizations/${organization}/chats`, { headers: token ? bearer(token) : {} });
    const until = (status: number, token: string, api = shared) =>
      vi.waitFor(async () => expect((await chats(token, { api })).status).toBe(status), {
        timeout: 60_000,
        interval: 200,
      });

    it('names the customer, or the agent that speaks for it, in the audit', async () => {
      const { access_token, entity_id } = await newCustomer(service);
      const { body } = await service.post(TOKEN, agentTokenBody({ external_id: 'user-1' }), bearer(agentToken));
      await until(200, access_token);
      expect((await chats(access_token)).body).toEqual({ customer: entity_id, isUser: false });
      expect((await chats(body.access_token)).body).toEqual({ customer: body.entity_id, isUser: true });
      const { sub } = claimsOf(agentToken);
      await vi.waitFor(() => {
        const { stderr } = shared.process;
        expect(stderr).toContain(`audit: customer ${entity_id} read chats (cookie)\n`);
        expect(stderr).toContain(`audit: agent ${sub} for customer ${body.entity_id} read chats (agent_token)\n`);
      });
    });

    it('rejects agent tokens, damaged tokens and other texts with 401, and foreign organizations with 404', async () => {
      const { access_token: token } = await newCustomer(service);
      await until(200, token);
      const [head = '', claims = '', signature = ''] = token.split('.');
      const [, , other = ''] = (await newCustomer(service)).access_token.split('.');
      const twin = `${signature.slice(0, -1)}${{ A: 'B', Q: 'R', g: 'h', w: 'x' }[signature.at(-1) ?? '']}`;
      const signatures = [other, '', twin, 'A'.repeat(86)].map((each) => `${head}.${claims}.${each}`);
      const none = Buffer.from('{"alg":"none","typ":"at+jwt","kid":"x"}').toString('base64url');
      for (const wrong of [
        agentToken,
        ...signatures,
        `${none}.${claims}.`,
        `${token}x`,
        'dev:x',
        'x',
        'y'.repeat(9_000),
      ]) {
        const { status, headers } = await chats(wrong);
        expect([wrong, status, headers.get('www-authenticate')]).toEqual([wrong, 401, 'Bearer error="invalid_token"']);
      }
      const { status, headers } = await chats(undefined);
      expect([status, headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
      expect((await chats(token, { organization: 'another' })).status).toBe(404);
    });

    it('rejects tokens after the end of their session, of their customer’s sessions and of their agent', async () => {
      const [first, second, kept] = await Promise.all([1, 2, 3].map(() => newCustomer(service)));
      const { body } = await service.post(TOKEN, agentTokenBody({ external_id: 'user-2' }), bearer(agentToken));
      const tokens = [first, second, kept, body].map((each) => each?.access_token as string);
      for (const token of tokens) await until(200, token);
      const [ended = '', everywhere = '', valid = '', byAgent = ''] = tokens;
      await service.send('DELETE', '/v2/customer/token', bearer(ended));
      await service.post('/v2/customer/end_sessions', {}, bearer(everywhere));
      await service.send('DELETE', '/v2/token', bearer(agentToken));
      for (const token of [ended, everywhere, byAgent]) await until(401, token);
      expect((await chats(valid)).status).toBe(200);
      agentToken = await issueAgentToken(service);
    });

    it('rejects an expired token, and one whose iat is more than 30 s ahead', async () => {
      service.clock.advance({ seconds: -28_800 });
      const expired = (await newCustomer(service)).access_token;
      service.clock.reset();
      service.clock.advance({ seconds: 60 });
      const tooFar = (await newCustomer(service)).access_token;
      service.clock.reset();
      await until(200, (await newCustomer(service)).access_token);
      for (const token of [expired, tooFar]) expect((await chats(token)).status).toBe(401);
    });

    it('responds with 503 until it has read the keys and the list', async () => {
      const { access_token } = await newCustomer(service);
      for (const name of ['JWKS_URL', 'REVOCATIONS_URL']) {
        const { status, headers } = await chats(access_token, { api: await start({ [name]: 'http://127.0.0.1:9/' }) });
        expect([status, headers.get('retry-after')]).toEqual([503, '5']);
      }
    });

    it.each([
      ['a kind', { kind: 'other', value: 'x', issued_before: '2026-01-01T00:00:00.000Z', ...IN_FUTURE }],
      ['a field', { kind: 'subject', value: 'x', generation: 1, only: 'x', ...IN_FUTURE }],
      ['no limit', { kind: 'session', value: 'x', ...IN_FUTURE }],
    ])('responds with 503 after an entry with %s that it does not know', async (_, entry) => {
      const { access_token } = await newCustomer(service);
      let isKnown = true;
      const feed = await serve(() => ({ body: { ...PAGE, revocations: isKnown ? [] : [entry] } }));
      const api = await start({ REVOCATIONS_URL: feed });
      await until(200, access_token, api);
      isKnown = false;
      await until(503, access_token, api);
    });

    it('counts the age of its list without the time in a cache', async () => {
      const { access_token } = await newCustomer(service);
      const headers = { Age: '61' };
      const feed = await serve(() => ({ headers }));
      const api = await start({ REVOCATIONS_URL: feed });
      await until(503, access_token, api);
      headers.Age = '1';
      await until(200, access_token, api);
      headers.Age = '61';
      await until(503, access_token, api);
    });

    it('applies the higher limit of an entry, and reads everything again after a refused cursor', async () => {
      const { access_token } = await newCustomer(service);
      const { sid, iat } = claimsOf(access_token) as { sid: string; iat: number };
      const before = new Date((iat - 1) * 1000).toISOString();
      const client = { kind: 'client', value: claimsOf(access_token).client_id, issued_before: before, ...IN_FUTURE };
      const session = { kind: 'session', value: sid, ...IN_FUTURE };
      let step = 'begin';
      const feed = await serve((parameters) => {
        if (step === 'begin') return { body: { ...PAGE, revocations: [client, { ...session, epoch: 0 }] } };
        if (parameters.has('after')) return { status: 400, body: {} };
        return {
          body: {
            ...PAGE,
            revocations: [
              { ...session, epoch: 1 },
              { ...session, epoch: 0 },
            ],
          },
        };
      });
      const api = await start({ REVOCATIONS_URL: feed });
      await until(200, access_token, api);
      step = 'refused';
      await until(401, access_token, api);
    });

    it('responds with 503 to a token of an unknown key, and then as the next keys say', async () => {
      const { access_token } = await newCustomer(service);
      const [, ...others] = access_token.split('.');
      const kid = Buffer.from('{"typ":"at+jwt","alg":"ES256","kid":"unknown"}').toString('base64url');
      const forged = [kid, ...others].join('.');
      const { body } = await service.send('GET', '/.well-known/jwks.json');
      const known = (body as unknown as { keys: object[] }).keys;
      let keys = known.map((key) => ({ ...key, kid: 'another' }));
      const api = await start({ JWKS_URL: await serve(() => ({ body: { keys } })) });
      const retryAfter = async () => Number((await chats(forged, { api })).headers.get('retry-after'));
      await vi.waitFor(async () => expect(await retryAfter()).toBeGreaterThan(5), { timeout: 60_000 }); // it has keys
      for (const token of [access_token, forged]) expect((await chats(token, { api })).status).toBe(503);
      keys = known as typeof keys;
      await until(200, access_token, api); // within 30 s
      expect((await chats(forged, { api })).status).toBe(401);
    });
  });
});
