import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DiscoveryService } from '@nestjs/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestDatabase } from '../../../packages/conformance-kit/src/test-database.js';
import { freePort } from '../../../scripts/free-port.js';
import { routesOf as declaredRoutes } from '../../../src/http/routes/declared-routes.js';
import { exchangeCode, refresh } from '../../support/agent-tokens.js';
import { registryWithSignIn, SignInSystem, signIn } from '../../support/assertion-issuer.js';
import { basic, bearer } from '../../support/authorization-headers.js';
import { AgentBrowser, codeOf, implicitToken } from '../../support/authorization-page.js';
import { cookieBody, cookieHeader } from '../../support/cookie-grant.js';
import { emptyDatabaseOfTest, useDatabase } from '../../support/databases.js';
import { manage } from '../../support/management-api.js';
import {
  environmentOf,
  PORTS,
  PRODUCTION,
  runCli,
  type ServiceProcess,
  startServiceProcess,
} from '../../support/processes.js';
import { RawConnection } from '../../support/raw-http.js';
import { LINK } from '../../support/sign-in-services.js';
import { ACME, ACME_AGENT, ACME_ORIGIN, BACKEND_SECRET, writeRegistry } from '../../support/test-registry.js';
import { httpClientOf, request, startTestService, type TestService } from '../../support/test-service.js';
import { newCustomer, redeem, transferToken } from '../../support/transfers.js';

const ADMIN_TOKEN = 'operator-token-of-the-tests-0123456789';
const ADMIN_TOKENS = `operator:all:${ADMIN_TOKEN}`;
const SERVER_SECRET = 'resource-server-secret-of-the-test';
const FIELDS = [
  ...['level', 'time', 'msg', 'request_id', 'caller_request_id', 'surface', 'method', 'route', 'status', 'duration_ms'],
  ...['client_id', 'organization_id', 'grant', 'jti', 'sub', 'token_client_id', 'resource_server'],
  ...['error', 'reason', 'cause'],
];
const BODY = cookieBody();

interface Line extends Record<string, unknown> {
  level: string;
  msg?: string;
  stream?: string;
}

/** The routes of both ports, as `listener METHOD pattern`. */
function routesOf({ application }: TestService): string[] {
  const routes = declaredRoutes(application.get(DiscoveryService, { strict: false }));
  const patternOf = (path: string) => path.replaceAll(/\{(\w+)\}/g, ':$1').replace(/\/$/, '') || '/';
  return routes.map(({ listener, method, path }) => `${listener} ${method.toUpperCase()} ${patternOf(path)}`);
}

describe('the log of a process that gets every kind of request', () => {
  const MARKER = 'MARKEDSECRET';
  const { email, password } = ACME_AGENT;
  const secrets = new Set<string>([MARKER, password, email, BACKEND_SECRET, ADMIN_TOKEN, SERVER_SECRET]);
  let acme: SignInSystem;
  const database = useDatabase();
  let service: ServiceProcess;
  let routes: string[];
  let lines: Line[];
  let output: string;

  beforeAll(async () => {
    const inProcess = await startTestService({ environment: { ADMIN_TOKENS } });
    routes = routesOf(inProcess);
    await inProcess.stop();
    acme = await SignInSystem.start();
    const registry = registryWithSignIn({ [ACME]: acme.settings() });
    registry.resource_servers.push({ id: 'chat-api', secret: SERVER_SECRET, audiences: ['customer-api'] });
    service = await startServiceProcess({
      ...environmentOf(database),
      ...PRODUCTION,
      LOG_LEVEL: 'trace',
      MIGRATE_ON_START: 'true',
      ADMIN_TOKENS,
      REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml'), registry),
    });
    await callEverything();
    await useEveryGrant();
    await sendMalformedRequests();
    await request(`${service.url}/last-request`, { headers: { 'x-request-id': 'the-very-last' } });
    expect(await service.terminate()).toBe(0);
    const { stdout, stderr } = service.process;
    output = stdout + stderr;
    lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
  });
  afterAll(() => acme?.issuer.stop());

  /** Adds the parts of tokens and cookies, except the ids in them, which are not secret. */
  const addSecrets = (...values: unknown[]) => {
    const parts = values.flatMap((value) => String(value).split(/[:.]/));
    for (const part of parts) if (part.length > 15 && !/^[0-9a-f-]{36}$/.test(part)) secrets.add(part);
  };

  /** Calls each route and some unknown paths, with the marker wherever a caller can put a value. */
  async function callEverything(): Promise<void> {
    const headers = {
      authorization: `Bearer dev:${MARKER}`,
      cookie: `__svc_cid=${MARKER}; __svc_cst=${MARKER}; agent_session=${MARKER}`,
      origin: `https://${MARKER.toLowerCase()}.example`,
      'user-agent': MARKER,
      'x-forwarded-for': MARKER,
      'x-request-id': `${MARKER} ${MARKER}`,
      traceparent: MARKER,
      referer: `https://x.example/${MARKER}`,
    };
    const fields = ['grant_type', 'client_id', 'code', 'refresh_token', 'token', 'email', 'password', 'state'];
    const marked = Object.fromEntries([...fields, ...Object.keys(BODY)].map((name) => [name, MARKER]));
    const bodies = [JSON.stringify(marked), JSON.stringify({ ...BODY, redirect_uri: MARKER }), `{"${MARKER}`];
    bodies.push(new URLSearchParams(marked).toString(), MARKER.repeat(2_000));
    const calls = routes.map((route) => route.split(' ') as [string, string, string]);
    calls.push(
      ['public', 'POST', `/${MARKER}`],
      ['public', 'PUT', '/v2/token'],
      ['management', 'GET', `/${MARKER}/%zz`],
    );
    const allHeaders = [headers, { ...headers, authorization: `Basic ${btoa(`${MARKER}:${MARKER}`)}` }, {}];
    for (const [surface, method, pattern] of calls) {
      const path = pattern.replace(/:\w+/g, MARKER);
      const base = surface === 'public' ? service.url : service.managementUrl;
      for (const [index, body] of (method === 'GET' ? [undefined, undefined, undefined] : bodies).entries()) {
        const init = { method, headers: allHeaders[index % allHeaders.length] ?? {}, ...(body && { body }) };
        await request(`${base}${path}?secret=${MARKER}&client_id=${MARKER}`, init);
      }
    }
  }

  /** Uses every grant and route with real secrets. */
  async function useEveryGrant(): Promise<void> {
    const client = httpClientOf(service.url);
    const { post, send } = client;
    const first = await post('/v2/customer/token', BODY);
    addSecrets(first.body.access_token, first.cookies[1]?.split(/[=;]/)[1]);
    const cookie = cookieHeader(first);
    expect((await post('/v2/customer/token', BODY, { cookie })).body.entity_id).toBe(first.body.entity_id);
    const assertion = await acme.assert(Date.now(), { sub: MARKER, jti: MARKER });
    const linked = await signIn(client, assertion, LINK, { cookie, origin: ACME_ORIGIN });
    addSecrets(assertion, linked.body.access_token);
    expect(linked.body.entity_id).toBe(first.body.entity_id);
    for (const claim of ['iss', 'sub', 'aud', 'exp', 'iat', 'jti', 'client_id'])
      expect((await signIn(client, await acme.assert(Date.now(), { [claim]: [MARKER] }))).status).toBe(400);
    for (const header of ['kid', 'typ', 'jku'])
      expect((await signIn(client, await acme.assert(Date.now(), {}, { [header]: MARKER }))).status).toBe(400);
    await post(`/v2/customer/${ACME}/support/token`, { ...BODY, organization_id: undefined }, { cookie });
    const { access_token } = await newCustomer(client);
    const code = await transferToken(client, access_token);
    const redeemed = await redeem(client, code);
    addSecrets(access_token, code, redeemed.body.access_token);
    expect(redeemed.status).toBe(200);
    await sleep(2_100); // A second use more than 2 s after the first is a replay.
    expect((await redeem(client, code)).status).toBe(400);
    await send('GET', '/v2/customer/info', bearer(access_token));
    const agent = await implicitToken(client);
    addSecrets(agent);
    await post('/v2/customer/token', { ...BODY, grant_type: 'agent_token' }, bearer(agent));
    const browser = new AgentBrowser(client);
    await browser.signIn({ ...ACME_AGENT, password: MARKER });
    const authorization = await codeOf(browser);
    const pair = await exchangeCode(client, authorization);
    const next = await refresh(client, pair.body.refresh_token);
    for (const { body } of [pair, next]) addSecrets(body.access_token, body.refresh_token);
    addSecrets(authorization);
    for (const value of browser.cookies.values()) addSecrets(value);
    await refresh(client, MARKER, { client_secret: MARKER });
    const operator = bearer(ADMIN_TOKEN);
    for (const token of [access_token, MARKER]) {
      await manage(service, 'POST', '/oauth2/introspect', basic('chat-api', SERVER_SECRET), { token });
      await manage(service, 'POST', '/oauth2/revoke', operator, { token });
    }
    await manage(service, 'GET', `/admin/customers/${first.body.entity_id}`, operator);
    await manage(service, 'DELETE', `/admin/customers/${first.body.entity_id}`, operator);
    await send('DELETE', '/v2/token', bearer(agent));
    for (const path of ['/health/live', '/health/ready', '/metrics']) await manage(service, 'GET', path);
    const [key] = JSON.parse(readFileSync(join(database.folder, 'keys.json'), 'utf8')).keys;
    addSecrets(key.d);
    if (database.url.startsWith('m')) secrets.add(`:${new URL(database.url).password}@`);
  }

  async function sendMalformedRequests(): Promise<void> {
    for (const bytes of [
      `${MARKER}\r\n\r\n`,
      `GET /${MARKER} HTTP/1.1\r\n\r\n`,
      `GET / HTTP/1.1\r\nX: ${MARKER.repeat(2_000)}\r\n\r\n`,
    ]) {
      const connection = await RawConnection.open(service.url);
      connection.send(bytes);
      await sleep(100);
    }
    const leaving = connect(Number(new URL(service.url).port), '127.0.0.1');
    await once(leaving, 'connect');
    leaving.write(`POST /v2/customer/token HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n${MARKER}`);
    await sleep(100);
    leaving.resetAndDestroy();
    await sleep(100);
  }

  it('contains no body, query, header value, token, code, cookie, password or email, plain or encoded', () => {
    const forms = (text: string) => [text, btoa(text), encodeURIComponent(text), text.toLowerCase()];
    expect([...secrets].filter((secret) => forms(secret).some((form) => output.includes(form)))).toEqual([]);
    expect(secrets.size).toBeGreaterThan(20);
  });

  it('has a line for every route of both ports, each with only the documented fields', () => {
    const requestLines = lines.filter(({ msg }) => msg === 'request');
    const seen = new Set(requestLines.map(({ surface, method, route }) => `${surface} ${method} ${route}`));
    expect(routes.filter((route) => !seen.has(route))).toEqual([]);
    expect(routes.length).toBeGreaterThan(15);
    for (const line of requestLines) expect(FIELDS).toEqual(expect.arrayContaining(Object.keys(line)));
    expect(new Set(requestLines.map(({ route }) => route))).toEqual(
      new Set([...routes.map((each) => each.split(' ')[2]), 'none']),
    );
  });

  it('has the internal reason of error responses, malformed requests and disconnected callers', () => {
    const hasLine = (error: string, reason: string) =>
      lines.some((line) => line.error === error && line.reason === reason);
    expect(hasLine('invalid_grant', 'code: replayed')).toBe(true);
    expect(
      hasLine('invalid_token', 'no bearer token in the Authorization header') ||
        hasLine('invalid_token', 'no Authorization header'),
    ).toBe(true);
    expect(hasLine('invalid_request', 'HPE_HEADER_OVERFLOW')).toBe(true);
    expect(lines.filter(({ status }) => status === 499)).toMatchObject([
      { route: '/v2/customer/token', method: 'POST' },
    ]);
    expect(lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  it('contains the last request line after SIGTERM', () => {
    expect(lines.some((line) => line.caller_request_id === 'the-very-last')).toBe(true);
  });

  it('has the audit events in a stream of their own', () => {
    const audit = lines.filter(({ stream }) => stream === 'audit');
    const names = new Set(audit.map(({ event }) => event));
    for (const event of [
      'identity.created',
      'token.issued',
      'transfer_token.replayed',
      'sign_in.failed',
      'identity.erased',
    ]) {
      expect(names).toContain(event);
    }
  });
});

describe('the log on stdout', () => {
  async function startWith(stdout: number | 'pipe', database: TestDatabase, errors: number | 'pipe' = 'pipe') {
    const env = {
      PATH: process.env.PATH,
      ...PORTS,
      ...environmentOf(database),
      ...PRODUCTION,
      MIGRATE_ON_START: 'true',
      REGISTRY_FILE: writeRegistry(join(database.folder, 'registry.yaml')),
      PORT: String(await freePort()),
    };
    const child = spawn(process.execPath, ['dist/main.js'], { env, stdio: ['ignore', stdout, errors] });
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      stderr += text;
    });
    const url = `http://127.0.0.1:${env.PORT}`;
    const isServing = () =>
      fetch(`${url}/.well-known/jwks.json`).then(
        (response) => response.ok,
        () => false,
      );
    await expect.poll(isServing).toBe(true);
    const ask = async () => {
      const response = await fetch(`${url}/v2/customer/token`, { method: 'POST', body: JSON.stringify(BODY) });
      await response.arrayBuffer();
      return response.status;
    };
    return { child, ask, stderr: () => stderr };
  }

  it.each(['a full disk', 'a full disk, like stderr', 'a reader that hangs'])(
    'stops neither the responses nor the end of the process when stdout leads to %s',
    async (destination) => {
      const database = await emptyDatabaseOfTest();
      const full = destination === 'a reader that hangs' ? undefined : openSync('/dev/full', 'w');
      const errors = destination === 'a full disk, like stderr' ? full : 'pipe';
      const { child, ask, stderr } = await startWith(full ?? 'pipe', database, errors);
      try {
        const statuses = new Set<number>();
        for (let round = 0; round < 12; round++) {
          for (const status of await Promise.all(Array.from({ length: 25 }, ask))) statuses.add(status);
        }
        expect([...statuses]).toEqual([200]);
        if (destination === 'a full disk') {
          expect(stderr()).toBe(
            'stdout: cannot write the log (ENOSPC); the service continues and buffers up to 4 MiB of log lines\n',
          );
        }
        expect(child.exitCode).toBe(null);
        child.kill('SIGINT');
        await expect.poll(() => child.exitCode).toBe(0);
      } finally {
        child.kill('SIGKILL');
        if (full !== undefined) closeSync(full);
      }
    },
  );

  it('has readable lines in development', async () => {
    const environment = environmentOf(await emptyDatabaseOfTest());
    const service = await startServiceProcess({ ...environment, MIGRATE_ON_START: 'true' });
    await request(`${service.url}/nothing`, {});
    await service.process.says(/^\[[\d:.]+\] INFO: request \{.*"status":404/m);
    await service.terminate();
  });
});

it('LOG_LEVEL suppresses request lines, but no audit event', async () => {
  const database = await emptyDatabaseOfTest();
  expect((await runCli(['keys', 'generate'])).stdout).not.toContain('"stream"');
  const environment = { ...environmentOf(database), ...PRODUCTION, LOG_LEVEL: 'fatal' };
  await runCli(['migrate'], environment);
  const registry = writeRegistry(join(database.folder, 'registry.yaml'));
  expect((await runCli(['registry', 'apply', registry], environment)).stderr).toContain('"event":"registry.changed"');
});
