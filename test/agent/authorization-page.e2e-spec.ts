import { ServiceUnavailableException } from '@nestjs/common';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { Agent } from '../../src/registry/agent.entity.js';
import { Agents } from '../../src/registry/agents.js';
import { changePassword, claimsOf, pkce } from '../support/agent-tokens.js';
import {
  AgentBrowser,
  BACKEND_CALLBACK,
  FOR_CODE,
  FOR_NATIVE,
  FOR_PUBLIC,
  FOR_TOKEN,
  FORM,
  formOf,
  type Query,
  queryOf,
  redirected,
  targetOf,
  unescaped,
} from '../support/authorization-page.js';
import { expectInvalidRequest, MALFORMED } from '../support/expect-error.js';
import {
  ACME,
  ACME_AGENT,
  ACME_PAGE,
  ACME_PREFIX,
  ACME_SITE,
  PUBLIC_SITE,
  RIVAL_AGENT,
  RIVAL_SITE,
  testRegistry,
} from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { serviceOfTest, useService } from '../support/use-service.js';

const ISS = 'https://auth.example';
const EIGHT_HOURS_SECONDS = 28_800;
/** An agent and an application that share some scopes only. Their names contain markup. */
const MARKUP = '<script>alert("1")</script>';
const MARKUP_SCOPE = "<img/src=x/onerror='x'>";
const BEYOND_ASCII = 'https://bücher.example/本';
const SECOND_AGENT = { email: 'second@acme.example', password: 'the second pass phrase' };
/** Characters that end an attribute, a URL of a refresh or a query, or that begin another element. */
const HOSTILE_CALLBACK = `https://hostile.example/'"><b>;url=https://evil.example/?a=b&amp;&lt;"url='`;
const LONG_CALLBACK = `https://hostile.example/${'x'.repeat(1_800)}${'語'.repeat(100)}`;
const PAGE_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  'content-type': 'text/html; charset=utf-8',
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};
const POWERLESS_AGENT = { email: 'powerless@acme.example', password: 'a third pass phrase' };

const registry = testRegistry();
registry.clients.push(
  {
    ...{ client_id: 'scoped', name: 'Scoped', client_type: 'web', organization_id: ACME },
    ...{
      redirect_uris: [ACME_PAGE, BEYOND_ASCII, HOSTILE_CALLBACK, LONG_CALLBACK],
      scopes: ['customers:own', 'agents:read', 'reports:read'],
    },
  },
  {
    ...{ client_id: 'public-scoped', name: `The ${MARKUP} app`, client_type: 'web' },
    ...{ redirect_uris: ['https://markup.example/'], scopes: ['customers:own', 'agents:read', MARKUP_SCOPE] },
  },
);
const ofAcme = { name: 'Agent', organization_id: ACME };
registry.agents[0] = { ...ACME_AGENT, ...ofAcme, scopes: ['customers:own', 'agents:read', MARKUP_SCOPE, 'other'] };
registry.agents.push({ ...SECOND_AGENT, ...ofAcme, scopes: ['customers:own'] }, { ...POWERLESS_AGENT, ...ofAcme });

const FOR_SCOPED: Query = { ...FOR_TOKEN, client_id: 'scoped' };
const FOR_PUBLIC_SCOPED: Query = {
  response_type: 'token',
  client_id: 'public-scoped',
  redirect_uri: 'https://markup.example/',
};

const service = useService({ registry, environment: { TRUST_PROXY: '1' } });
let signedIn: AgentBrowser;
let addresses = 0;
beforeAll(async () => {
  signedIn = await newSession();
});

/** A browser with an IP address of its own, so that tests do not share a limit of sign-in attempts. */
function newBrowser(ip = `198.51.100.${++addresses}`): AgentBrowser {
  return new AgentBrowser(service, { 'x-forwarded-for': ip });
}

/** Such a browser, in which the agent has signed in. */
async function newSession(agent = ACME_AGENT): Promise<AgentBrowser> {
  const browser = newBrowser();
  await browser.signIn(agent);
  return browser;
}

/** Another browser with the cookies of a browser. */
function copyOf({ cookies }: AgentBrowser): AgentBrowser {
  const copy = newBrowser();
  for (const [name, value] of cookies) copy.cookies.set(name, value);
  return copy;
}

describe('a request with an invalid client or redirect URI', () => {
  it.each<[string, Query]>([
    ['no redirect_uri', { redirect_uri: undefined }],
    ['a second redirect_uri', { redirect_uri: [ACME_PAGE, 'https://evil.example/'] }],
    ['another host', { redirect_uri: 'https://evil.example/chat/' }],
    ['a path below', { redirect_uri: `${ACME_PAGE}x` }],
    ['an unknown client_id', { client_id: 'nobody' }],
    ["another client's client_id", { client_id: RIVAL_SITE }],
  ])('gets an error page and never a redirect: %s', async (_, more) => {
    const query = { ...FOR_TOKEN, ...more };
    expectErrorPage(await signedIn.open({ ...query, state: 's' }), /^(client_id|redirect_uri): /);
    expectErrorPage(await newBrowser().open({ ...query, response_type: 'code' }), /^(client_id|redirect_uri): /);
  });

  it('gets an error page for a path below the redirect URI, also if the cookie grant allows paths below', async () => {
    const prefix = { ...FOR_TOKEN, client_id: ACME_PREFIX };
    expectErrorPage(await signedIn.open({ ...prefix, redirect_uri: 'https://acme.example/app/x' }), 'redirect_uri: ');
    expect((await signedIn.open({ ...prefix, redirect_uri: 'https://acme.example/app' })).status).toBe(302);
  });

  it('gets the common error shape if it accepts JSON', async () => {
    const accept = { accept: 'application/json' };
    expectInvalidRequest(await signedIn.open({ ...FOR_TOKEN, client_id: 'nobody' }, accept), 'client_id: unknown');
    const wrong = { ...FOR_TOKEN, redirect_uri: 'https://evil.example/' };
    expectInvalidRequest(await signedIn.open(wrong, accept), /^redirect_uri: .* trailing slash$/);
  });

  it('gets an error page if the invalid redirect URI comes in a form', async () => {
    const doctored = queryOf({ ...FOR_TOKEN, redirect_uri: 'https://evil.example/' });
    const browser = newBrowser();
    const page = await browser.open(FOR_TOKEN);
    expectErrorPage(await browser.submit(page, { ...ACME_AGENT, request: doctored }), 'redirect_uri: ');
    expect([...browser.cookies.keys()]).toEqual([]);
    const consent = await signedIn.open({ ...FOR_TOKEN, prompt: 'consent' });
    expectErrorPage(await signedIn.submit(consent, { request: doctored, decision: 'allow' }), 'redirect_uri: ');
  });
});

describe('any other invalid request', () => {
  it.each<[string, Query, '?' | '#', string]>([
    ['code for a web application', { ...FOR_TOKEN, response_type: 'code' }, '?', 'response_type: must be token'],
    ['token for a server application', { ...FOR_CODE, response_type: 'token' }, '#', 'response_type: must be code'],
    ['a repeated state', { ...FOR_CODE, state: ['s', 't'] }, '?', 'state: given more'],
  ])(
    'is redirected to the application with an error before the agent signs in: %s',
    async (_, parameters, mode, hint) => {
      const query: Query = { state: 's +&#?=%', ...parameters };
      for (const browser of [newBrowser(), signedIn]) {
        const response = await browser.open(query);
        expect(response).toMatchObject({ status: 302, text: '', cookies: [] });
        expect(redirected(response)).toEqual({
          target: query.redirect_uri,
          mode,
          parameters: {
            error: 'invalid_request',
            error_description: MALFORMED,
            error_hint: expect.stringMatching(new RegExp(`^${hint}`)),
            state: [query.state].flat()[0],
            iss: ISS,
          },
        });
      }
    },
  );

  it('is not a request with an empty parameter, which counts as left out (RFC 6749 §3.1)', async () => {
    const response = await signedIn.open({ ...FOR_TOKEN, state: '', scope: '', prompt: '' });
    const { parameters } = redirected(response);
    expect(parameters).toMatchObject({ scope: 'customers:own' });
    expect(parameters).not.toHaveProperty('state');
  });

  it('is not a request with an unknown parameter', async () => {
    const response = await signedIn.open({ ...FOR_TOKEN, nonce: ['a', 'b'], claims: '{}', __proto__: 'x' });
    expect(redirected(response).parameters).toHaveProperty('access_token');
  });
});

describe('the response to a web application', () => {
  it('is in the fragment, percent-encoded, in the order of protocol §6.3', async () => {
    const response = await newBrowser().authorize({ ...FOR_TOKEN, state: 'a b&c' });
    expect(response.status).toBe(302);
    expect(response.headers.get('location')).toMatch(
      /^https:\/\/acme\.example\/chat\/#access_token=dev%3A[\w-]+\.[\w-]+\.[\w-]+&token_type=Bearer&expires_in=28800&scope=customers%3Aown&state=a%20b%26c&iss=https%3A%2F%2Fauth\.example$/,
    );
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
  });

  it('contains a token of the agent for the application and the agent’s organization', async () => {
    const { parameters } = redirected(await signedIn.open(FOR_TOKEN));
    const claims = { aud: 'agent-api', client_id: ACME_SITE, organization_id: ACME, scope: 'customers:own' };
    expect(claimsOf(parameters.access_token as string)).toMatchObject(claims);
  });

  it('returns a state from a query that contains a question mark', async () => {
    const response = await signedIn.open(`${queryOf(FOR_CODE)}&state=a?b&${queryOf(pkce().asked)}&prompt=nonsense`);
    expect(redirected(response).parameters).toMatchObject({ state: 'a?b', error: 'invalid_request' });
  });
});

it('the response to an application is written in ASCII if the registered redirect URI is not', async () => {
  const response = await signedIn.open({ ...FOR_SCOPED, redirect_uri: BEYOND_ASCII });
  expect(response.headers.get('location')).toMatch(/^https:\/\/b%C3%BCcher\.example\/%E6%9C%AC#access_token=/);
});

it('the response to a server or native application has only a code, the state and iss in the query', async () => {
  const response = await signedIn.open({ ...FOR_CODE, state: 's' });
  expect(redirected(response)).toEqual({
    target: BACKEND_CALLBACK,
    mode: '?',
    parameters: { code: expect.stringMatching(/^dev:[\w-]{43}$/), state: 's', iss: ISS },
  });
  expect(redirected(await signedIn.open(FOR_CODE)).parameters).toEqual({ code: expect.anything(), iss: ISS });
});

describe('the prompt parameter', () => {
  it('with the value none shows no page: the response is login_required, consent_required or a token', async () => {
    const ask = async (browser: AgentBrowser, parameters: Query) =>
      redirected(await browser.open({ ...parameters, prompt: 'none' })).parameters;
    expect(await ask(newBrowser(), FOR_TOKEN)).toMatchObject({ error: 'login_required', iss: ISS });
    expect(await ask(newBrowser(), FOR_CODE)).toMatchObject({ error: 'login_required', iss: ISS });
    expect(await ask(signedIn, FOR_PUBLIC)).toMatchObject({ error: 'consent_required', iss: ISS });
    expect(await ask(signedIn, FOR_TOKEN)).toHaveProperty('access_token');
  });

  it('with the value login asks the agent to sign in again, once', async () => {
    const browser = await newSession();
    const page = await browser.open({ ...FOR_TOKEN, prompt: 'login' });
    expect(titleOf(page)).toBe('Sign in');
    const response = await browser.submit(page, ACME_AGENT);
    const next = await browser.follow(response);
    expect(redirected(next).parameters).toHaveProperty('access_token');
  });

  it('with the value consent asks for consent also if it is not required', async () => {
    const page = await signedIn.open({ ...FOR_TOKEN, prompt: 'consent' });
    expect(titleOf(page)).toBe('Allow access');
    expect(page.text, 'an application of its own').not.toContain('for every organization');
    const response = await signedIn.submit(page, { decision: 'allow' });
    expect(response.status).toBe(200);
    expect(redirected(response).parameters).toHaveProperty('access_token');
    expect(titleOf(await newBrowser().authorize({ ...FOR_TOKEN, prompt: 'login consent' }))).toBe('Allow access');
    expect(titleOf(await newBrowser().authorize({ ...FOR_TOKEN, prompt: 'login  consent login' }))).toBe(
      'Allow access',
    );
  });
});

describe('the consent of an agent', () => {
  it('is not asked for by a private application of the agent’s organization', async () => {
    const response = await newBrowser().authorize(FOR_CODE);
    expect(redirected(response).parameters).toHaveProperty('code');
  });

  it('cannot be given to a private application of another organization', async () => {
    const response = await newBrowser().authorize({ ...FOR_TOKEN, state: 's' }, RIVAL_AGENT);
    const expectedError = { error: 'access_denied', error_description: expect.any(String), state: 's', iss: ISS };
    expect(redirected(response).parameters).toMatchObject(expectedError);
    expect(redirected(response).parameters).not.toHaveProperty('access_token');
  });

  it('is asked for once by a public application, for every agent', async () => {
    const browser = newBrowser();
    const page = await browser.authorize(FOR_PUBLIC, SECOND_AGENT);
    expect(page.status).toBe(200);
    expect(page.text).toContain('Widget for everybody');
    expect(page.text).toContain('create customers, and act in the name of each of your customers');
    expect(page.text).toContain(SECOND_AGENT.email);
    expect(page.text).toContain('This application is for every organization and does not belong to yours.');
    const allowed = await browser.submit(page, { decision: 'allow' });
    expect(allowed.status).toBe(200);
    expect(redirected(allowed)).toMatchObject({ mode: '#', parameters: { scope: 'customers:own', iss: ISS } });
    const again = redirected(await browser.open(FOR_PUBLIC));
    expect(claimsOf(again.parameters.access_token as string)).toMatchObject({ client_id: PUBLIC_SITE });
    expect(titleOf(await newBrowser().authorize(FOR_PUBLIC, RIVAL_AGENT))).toBe('Allow access');
  });

  it('is asked for again if a public application requests a new scope, and not for scopes with consent', async () => {
    const ask = (scope: string) => signedIn.open({ ...FOR_PUBLIC_SCOPED, scope });
    const allow = async (scope: string) => signedIn.submit(await ask(scope), { decision: 'allow' });
    expect(redirected(await allow('agents:read')).parameters).toMatchObject({ scope: 'agents:read' });
    expect(titleOf(await ask('agents:read customers:own'))).toBe('Allow access');
    expect(redirected(await allow('customers:own')).parameters).toMatchObject({ scope: 'customers:own' });
    for (const scope of ['agents:read', 'customers:own', 'customers:own agents:read'])
      expect(redirected(await ask(scope)).parameters).toMatchObject({ scope });
  });

  it('counts for the scopes that the page showed, and is asked for again for any other', async () => {
    const browser = newBrowser();
    const scoped = { ...FOR_PUBLIC_SCOPED, prompt: 'consent' };
    const page = await browser.authorize({ ...scoped, scope: 'customers:own' });
    const request = queryOf({ ...scoped, scope: 'customers:own agents:read' });
    const again = await browser.submit(page, { request, decision: 'allow' });
    expect(titleOf(again)).toBe('Allow access');
    expect(again.text).toContain('agents:read');
    const response = await browser.submit(again, { decision: 'allow' });
    expect(redirected(response).parameters).toMatchObject({ scope: 'customers:own agents:read' });
  });

  it.each(['', 'yes'])('is neither given nor denied by the decision %j', async (decision) => {
    const page = await signedIn.open(FOR_PUBLIC);
    expectErrorPage(await signedIn.submit(page, { decision }), 'decision: ');
    expect(titleOf(await signedIn.open(FOR_PUBLIC))).toBe('Allow access');
  });

  it('needs a new sign-in if the session has ended before the decision', async () => {
    const browser = newBrowser();
    const page = await browser.authorize(FOR_PUBLIC);
    browser.cookies.delete('__Host-agent_session');
    expect(titleOf(await browser.submit(page, { decision: 'allow' }))).toBe('Sign in');
  });
});

describe('the granted scope', () => {
  it.each([
    ['all common scopes of client and agent if the request has no scope', undefined, 'customers:own agents:read'],
    ['the requested scope, without what the agent lacks', 'reports:read agents:read', 'agents:read'],
  ])('is %s', async (_, scope, granted) => {
    const { parameters } = redirected(await signedIn.open({ ...FOR_SCOPED, scope }));
    expect(parameters.scope).toBe(granted);
    expect(claimsOf(parameters.access_token as string).scope).toBe(granted);
  });

  it('is empty for a scope that the agent lacks, and the response is invalid_scope', async () => {
    const { parameters } = redirected(await signedIn.open({ ...FOR_SCOPED, scope: 'reports:read', state: 's' }));
    expect(parameters).toMatchObject({ error: 'invalid_scope', state: 's', iss: ISS });
    expect(parameters).not.toHaveProperty('access_token');
  });
});

describe('the sign-in', () => {
  it('continues with the authorization request', async () => {
    const browser = newBrowser();
    const response = await browser.signIn(ACME_AGENT, { ...FOR_TOKEN, state: 'a b', scope: 'customers:own' });
    expect(response.status).toBe(200);
    const target = targetOf(response);
    expect(target).toMatch(/^\/\?/);
    expect(Object.fromEntries(new URLSearchParams(target.slice(2)))).toMatchObject({ ...FOR_TOKEN, state: 'a b' });
  });

  it('normalizes the email', async () => {
    expect((await newBrowser().signIn({ ...ACME_AGENT, email: ' AGENT@Acme.Example ' })).status).toBe(200);
  });

  it('gives the same response, byte for byte, for an unknown email and for a wrong password', async () => {
    const unknown = { email: ACME_AGENT.email.replace('agent', 'nobdy'), password: 'wrong' };
    const wrong = { ...ACME_AGENT, password: 'wrong' };
    const statuses = async (agent: typeof wrong) => {
      const browser = newBrowser();
      const responses: TestResponse[] = [];
      for (let n = 0; n < 11; n++) responses.push(await browser.signIn(agent));
      expect([...browser.cookies.keys()]).toEqual([]);
      return responses.map((response) => ({
        status: response.status,
        headers: headersOf(response),
        text: withoutVariableParts(response, agent.email),
      }));
    };
    await service.clock.whileStopped(async () => {
      const ofWrong = await statuses(wrong);
      expect(ofWrong.map(({ status }) => status)).toEqual([...Array(10).fill(400), 429]);
      expect(await statuses(unknown)).toEqual(ofWrong);
    });
  });
});

describe('the limit of sign-in attempts', () => {
  const wrong = { ...ACME_AGENT, password: 'wrong' };
  const failing = async (browser: AgentBrowser, times: number, agent = wrong) => {
    for (let n = 0; n < times; n++) expect((await browser.signIn(agent)).status).toBe(400);
  };

  it('cannot be evaded by another spelling of the email or the IP address', async () => {
    const spellings = ['agent@acme.example ', 'AGENT@acme.example', ' agent@acme.example', 'agent@acme.example   '];
    const addresses = ['::ffff:203.0.113.8', '203.0.113.8', '::ffff:cb00:7108', '203.0.113.8', '203.0.113.8'];
    for (const [n, ip] of addresses.entries())
      await failing(newBrowser(ip), 2, { ...wrong, email: spellings[n] ?? ACME_AGENT.email });
    expect((await newBrowser('203.0.113.8').signIn()).status).toBe(429);
  });
});

describe('the agent session', () => {
  it('is a host-only cookie for 8 h that scripts and forms of other sites cannot use', async () => {
    const { cookies } = await newBrowser().signIn();
    const [session = '', ...attributes] = attributesOf(
      cookies.find((line) => line.startsWith('__Host-agent_session=')),
    );
    expect(session).toMatch(/^__Host-agent_session=[\w-]{43}$/);
    expect(attributes.filter((each) => !each.startsWith('Expires='))).toEqual(
      expect.arrayContaining([`Max-Age=${EIGHT_HOURS_SECONDS}`, 'Path=/', 'HttpOnly', 'Secure', 'SameSite=Lax']),
    );
    expect(attributes).toHaveLength(6);
    for (const line of cookies)
      expect(attributesOf(line)).toEqual(expect.arrayContaining(['HttpOnly', 'SameSite=Lax']));
  });

  it('has a plain name and is not Secure if AUTH_URL has no TLS, because browsers would not accept it', async () => {
    const other = await serviceOfTest({ environment: { AUTH_URL: 'http://localhost:3000' } });
    const browser = new AgentBrowser(other);
    const page = await browser.open(FOR_TOKEN);
    const response = await browser.submit(page, ACME_AGENT, undefined, { origin: 'http://localhost:3000' });
    expect([...browser.cookies.keys()].sort()).toEqual(['agent_device', 'agent_session']);
    for (const line of response.cookies) expect(attributesOf(line)).not.toContain('Secure');
  });

  it('ends after 8 h', async () => {
    const browser = await newSession();
    service.clock.advance({ seconds: EIGHT_HOURS_SECONDS - 5 });
    expect(await isSignedIn(browser)).toBe(true);
    service.clock.advance({ seconds: 6 });
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('ends when the agent signs out, also for a copy of the cookie', async () => {
    const browser = newBrowser();
    const page = await browser.authorize(FOR_PUBLIC);
    const copy = copyOf(browser);
    const response = await browser.submit(page, {}, '/sign-out');
    expect(response.status).toBe(200);
    expect(titleOf(response)).toBe('Signed out');
    expect(browser.cookies.has('__Host-agent_session')).toBe(false);
    expect(await isSignedIn(browser)).toBe(false);
    expect(await isSignedIn(copy)).toBe(false);
    expect(await isSignedIn(signedIn)).toBe(true);
  });

  it('ends in every browser when the agent’s password changes', async () => {
    const browsers = [await newSession(SECOND_AGENT), await newSession(SECOND_AGENT)];
    await withNewPassword(SECOND_AGENT, async (password) => {
      for (const browser of browsers) expect(await isSignedIn(browser)).toBe(false);
      expect((await newBrowser().signIn(SECOND_AGENT)).status).toBe(400);
      expect(await isSignedIn(signedIn)).toBe(true);
      expect(await isSignedIn(await newSession({ ...SECOND_AGENT, password }))).toBe(true);
    });
  });

  it('ends when the agent is removed', async () => {
    const browser = await newSession(POWERLESS_AGENT);
    expect(titleOf(await browser.open(FOR_TOKEN))).not.toBe('Sign in');
    await service.rowsOf(Agent).delete({ email: POWERLESS_AGENT.email });
    expect(titleOf(await browser.open(FOR_TOKEN))).toBe('Sign in');
    expect((await browser.signIn(POWERLESS_AGENT)).status).toBe(400);
  });

  it.each<[string, (cookies: Map<string, string>) => string | undefined]>([
    ['nothing', () => ''],
    ['another secret', (cookies) => withChangedCharacter(cookies.get('__Host-agent_session') as string)],
    ['JSON', (cookies) => `j:${JSON.stringify([cookies.get('__Host-agent_session')])}`],
    ['the value of the device’s cookie', (cookies) => cookies.get('__Host-agent_device')],
  ])('is not valid with %s in its cookie', async (_, forged) => {
    const browser = await newSession();
    browser.cookies.set('__Host-agent_session', encodeURIComponent(decodeURIComponent(forged(browser.cookies) ?? '')));
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('is not read from a cookie that a neighboring subdomain could have set', async () => {
    const browser = await newSession();
    browser.cookies.set('agent_session', browser.cookies.get('__Host-agent_session') as string);
    browser.cookies.delete('__Host-agent_session');
    expect(await isSignedIn(browser)).toBe(false);
  });

  it('is a new one at each sign-in, so that an attacker cannot fix it in advance (session fixation)', async () => {
    const attacker = await newSession();
    const victim = copyOf(attacker);
    const planted = victim.cookies.get('__Host-agent_session');
    await victim.signIn(SECOND_AGENT, { ...FOR_TOKEN, prompt: 'login' });
    expect(victim.cookies.get('__Host-agent_session')).not.toBe(planted);
    const subject = async (browser: AgentBrowser) =>
      claimsOf(redirected(await browser.open(FOR_TOKEN)).parameters.access_token as string).sub;
    expect(await isSignedIn(attacker)).toBe(false);
    await attacker.signIn();
    expect(await subject(victim)).not.toBe(await subject(attacker));
  });

  it('ends with the next sign-in in the same browser, also for a copy of the cookie', async () => {
    const browser = await newSession();
    const copy = copyOf(browser);
    expect(await isSignedIn(copy)).toBe(true);
    await browser.signIn(ACME_AGENT, { ...FOR_TOKEN, prompt: 'login' });
    expect(await isSignedIn(browser)).toBe(true);
    expect(await isSignedIn(copy)).toBe(false);
  });
});

describe.each([
  ['/sign-in', FOR_TOKEN, ACME_AGENT],
  ['/consent', { ...FOR_PUBLIC, prompt: 'consent' }, { decision: 'allow' }],
  ['/sign-out', { ...FOR_PUBLIC, prompt: 'consent' }, {}],
])('the form of %s', (action, parameters, fields: Record<string, string>) => {
  const openForm = async (): Promise<[AgentBrowser, TestResponse]> => {
    const browser = newBrowser();
    const page = action === '/sign-in' ? await browser.open(parameters) : await browser.authorize(parameters);
    return [browser, page];
  };
  /** Checks that the action of the form was not carried out. */
  const expectNothingDone = async (browser: AgentBrowser, response: TestResponse, hint: string | RegExp) => {
    expectErrorPage(response, hint);
    expect(await isSignedIn(browser)).toBe(action !== '/sign-in');
    if (action !== '/consent') return;
    const { parameters: next } = redirected(await browser.open({ ...FOR_PUBLIC, prompt: 'none' }));
    expect(next).toMatchObject({ error: 'consent_required' });
  };

  it.each(['https://evil.example', 'https://auth.example.evil.example', 'http://auth.example', 'null', ''])(
    'is refused from the Origin %j',
    async (origin) => {
      const [browser, page] = await openForm();
      await expectNothingDone(browser, await browser.submit(page, fields, action, { origin }), 'Origin: ');
    },
  );

  it('is refused without an Origin', async () => {
    const [browser, page] = await openForm();
    const body = new URLSearchParams({ ...formOf(page, action).hidden, ...fields }).toString();
    await expectNothingDone(browser, await browser.send('POST', action, { 'content-type': FORM }, body), 'Origin: ');
  });

  it('is refused if a field is given twice', async () => {
    const [browser, page] = await openForm();
    const once = new URLSearchParams({ ...formOf(page, action).hidden, ...fields }).toString();
    for (const name of action === '/sign-out' ? [] : ['request', ...Object.keys(fields)])
      await expectNothingDone(browser, await browser.post(action, `${name}=x&${once}&${name}=x`), 'body: ');
  });

  it('is refused as JSON and if it is too large', async () => {
    const [browser, page] = await openForm();
    const json = JSON.stringify({ ...formOf(page, action).hidden, ...fields });
    if (action !== '/sign-out') {
      const response = await browser.post(action, json, { 'content-type': 'application/json' });
      await expectNothingDone(browser, response, 'client_id: '); // as a form without fields
    }
    for (const size of [20_000, 1_100_000]) {
      const response = await browser.submit(page, { ...fields, password: 'x'.repeat(size) }, action);
      expect(response.status).toBe(413);
      expect(response.headers.get('connection')).toBe('close');
    }
  });
});

describe('the page after a form', () => {
  const PROMPTED: Query = { ...FOR_SCOPED, prompt: 'consent' };
  const formResponse = async (parameters: Query, decision: string) => {
    const page = await signedIn.open({ prompt: 'consent', ...parameters });
    return signedIn.submit(page, { decision });
  };

  it('is limited by its headers as every page is, and is not named in a Referer', async () => {
    const responses = [
      await newBrowser().signIn(),
      await formResponse(PROMPTED, 'allow'),
      await formResponse(PROMPTED, 'deny'),
    ];
    for (const response of responses) {
      expect(response.status).toBe(200);
      expect(headersOf(response)).toMatchObject({ ...PAGE_HEADERS, 'referrer-policy': 'no-referrer' });
      expect(response.headers.get('location')).toBeNull();
      expect(titleOf(response)).toBe('Continue');
      expect(linkOf(response)).toBe(targetOf(response));
    }
  });

  it('is what a form ends in, and a request without a form is redirected', async () => {
    const invalid = { ...PROMPTED, scope: 'none' };
    expect((await signedIn.open(invalid)).status).toBe(302);
    const consent = await signedIn.open(PROMPTED);
    const response = await signedIn.submit(consent, { request: queryOf(invalid), decision: 'allow' });
    expect({ status: response.status, title: titleOf(response) }).toEqual({ status: 200, title: 'Continue' });
    expect(redirected(response).parameters).toMatchObject({ error: 'invalid_scope' });
  });

  it.each([
    ['a web application', FOR_SCOPED, '#', 'access_token'],
    ['a server application', FOR_CODE, '?', 'code'],
    ['a native application', { ...FOR_NATIVE, ...pkce().asked }, '?', 'code'],
  ])('leads %s to its redirect URI with the response', async (_, query: Query, mode, parameter) => {
    const response = redirected(await formResponse({ ...query, state: 's' }, 'allow'));
    const parameters = { [parameter]: expect.any(String), state: 's', iss: ISS };
    expect(response).toMatchObject({ target: query.redirect_uri, mode, parameters });
  });

  it.each([
    ['markup and another refresh', HOSTILE_CALLBACK, HOSTILE_CALLBACK],
    ['many characters, and some outside ASCII', LONG_CALLBACK, encodeURI(LONG_CALLBACK)],
  ])('leads only to the registered redirect URI, with %s', async (_, redirect_uri, target) => {
    const state = `'";url=https://evil.example/&<b>`.padEnd(1_000, '"');
    const response = await formResponse({ ...PROMPTED, redirect_uri, state }, 'allow');
    const [url, fragment] = targetOf(response).split('#') as [string, string];
    expect(url).toBe(target);
    expect(Object.fromEntries(new URLSearchParams(fragment))).toMatchObject({ access_token: expect.anything(), state });
    expect(linkOf(response)).toBe(targetOf(response));
    expect(response.text.match(/<meta http-equiv|<a /g)).toHaveLength(2);
    expect(response.text).not.toMatch(/<b>|<script/);
  });
});

describe('every page', () => {
  const pages = async (): Promise<[string, TestResponse][]> => {
    const browser = newBrowser();
    const signIn = await browser.open(FOR_TOKEN);
    const problem = await browser.submit(signIn, { ...ACME_AGENT, password: 'x' });
    const consent = await browser.authorize({ ...FOR_TOKEN, prompt: 'consent' });
    const error = await browser.open({});
    const signedOut = await browser.submit(consent, {}, '/sign-out');
    return [
      ['sign-in', signIn],
      ['sign-in with a problem', problem],
      ['consent', consent],
      ['error', error],
      ['signed out', signedOut],
    ];
  };

  it('is limited to its purpose by its headers: it cannot be framed or stored', async () => {
    for (const [name, page] of await pages())
      expect({ name, ...headersOf(page) }).toMatchObject({ name, ...PAGE_HEADERS });
  });

  it('has no script, no inline style and no resource of another origin', async () => {
    for (const [, { text }] of await pages()) {
      expect(text).not.toMatch(/<script|\sstyle=|\son\w+=|javascript:/i);
      expect([...text.matchAll(/(?:src|href|action)="([^"]*)"/g)].map(([, target]) => target)).toEqual(
        expect.arrayContaining(['/page.css']),
      );
      expect(text).not.toMatch(/(?:src|href|action)="(?!\/[a-z])/);
    }
  });

  it('escapes text from outside', async () => {
    const browser = newBrowser();
    const attack = `"'><script>alert(1)</script>`;
    const query = { ...FOR_PUBLIC_SCOPED, state: attack, scope: MARKUP_SCOPE };
    const signIn = await browser.open(query);
    const problem = await browser.submit(signIn, { email: attack, password: 'my-secret-guess' });
    const consent = await browser.authorize(query);
    const error = await browser.open({ ...query, redirect_uri: attack, client_id: attack });
    for (const page of [signIn, problem, consent, error]) expect(page.text).not.toMatch(/<script|<img/);
    for (const page of [signIn, problem, consent])
      expect(page.text).toContain('The &lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; app');
    expect(problem.text).not.toContain('my-secret-guess');
    expect(problem.text).toContain(`value="&quot;&#39;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`);
    expect(consent.text).toContain('&lt;img/src=x/onerror=&#39;x&#39;&gt;');
    expect(redirected(await browser.submit(consent, { decision: 'deny' })).parameters.state).toBe(attack);
  });

  it('is an HTML page also for an internal error or an outage, and does not show the cause', async () => {
    const agents = service.application.get(Agents);
    const failures: [Error, number][] = [
      [new Error('a secret cause'), 500],
      [new ServiceUnavailableException('database'), 503],
    ];
    for (const [failure, status] of failures) {
      vi.spyOn(agents, 'byEmail').mockRejectedValue(failure);
      const browser = newBrowser();
      const page = await browser.signIn();
      expect(page.status).toBe(status);
      expect(titleOf(page)).toBe('This does not work');
      expect(page.text).not.toContain(failure.message);
      const form = formOf(await browser.open(FOR_TOKEN)).hidden;
      const json = await browser.post('/sign-in', { ...form, ...ACME_AGENT }, { accept: 'application/json' });
      expect(json.body).toMatchObject({ error: status === 500 ? 'server_error' : 'temporarily_unavailable' });
    }
  });

  it('uses a stylesheet that caches may store', async () => {
    const response = await service.send('GET', '/page.css');
    expect({ status: response.status, ...headersOf(response) }).toMatchObject({
      status: 200,
      'content-type': 'text/css; charset=utf-8',
      'cache-control': expect.stringMatching(/^public, max-age=\d+$/),
      'x-content-type-options': 'nosniff',
    });
  });
});

function expectErrorPage(page: TestResponse, hint: string | RegExp): void {
  expect(page.status).toBe(400);
  expect(page.headers.get('location')).toBeNull();
  expect(titleOf(page)).toBe('This does not work');
  expect(page.text).toContain(MALFORMED);
  expect(page.text).toContain(page.headers.get('x-request-id'));
  const displayedHint = /<code>(.*?)<\/code>/.exec(page.text)?.[1] ?? '';
  if (typeof hint === 'string') expect(displayedHint.startsWith(hint), displayedHint).toBe(true);
  else expect(displayedHint).toMatch(hint);
}

/** The URL of the only link of a page. */
function linkOf({ text }: TestResponse): string {
  return unescaped(/<a href="([^"]*)">/.exec(text)?.[1]);
}

function titleOf({ text }: TestResponse): string | undefined {
  return /<title>(.*?)<\/title>/.exec(text)?.[1];
}

async function isSignedIn(browser: AgentBrowser): Promise<boolean> {
  const { parameters } = redirected(await browser.open({ ...FOR_TOKEN, prompt: 'none' }));
  return parameters.error !== 'login_required';
}

function attributesOf(line = ''): string[] {
  return line.split('; ');
}

function headersOf({ headers }: TestResponse): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => !['date', 'x-request-id', 'set-cookie'].includes(name)));
}

/** The text of a page without the parts that differ between requests. */
function withoutVariableParts(page: TestResponse, email: string): string {
  return page.text.replaceAll(email, '');
}

/** Changes the third character from the end. */
function withChangedCharacter(text: string): string {
  return text.slice(0, -3) + (text.at(-3) === 'a' ? 'b' : 'a') + text.slice(-2);
}

/** Gives an agent a new password while `act` runs. */
async function withNewPassword(agent: typeof ACME_AGENT, act: (password: string) => Promise<void>): Promise<void> {
  const password = await changePassword(service, registry, agent.email);
  try {
    await act(password);
  } finally {
    await changePassword(service, registry, 'nobody');
    service.clock.advance({ seconds: 1 });
  }
}
