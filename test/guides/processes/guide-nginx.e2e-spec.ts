import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { freePort } from '../../../scripts/free-port.js';
import { findProgram } from '../../../scripts/programs.js';
import { listen } from '../../support/listen.js';
import { read, temporaryFolder } from '../../support/project-files.js';
import { plainRequest } from '../../support/raw-http.js';
import { request } from '../../support/test-service.js';

const example = (name: string) => read(`examples/integrating/resource-server/${name}`);
const nginxPath = findProgram(['nginx'], ['/usr/sbin']) ?? '';

const servers: Server[] = [];
const folder = temporaryFolder('nginx');
let running: ReturnType<typeof spawn> | undefined;

/** Starts a server, and returns its address without the scheme. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  return (await listen(server)).replace('http://', '');
}

/** Writes a configuration with these servers, and returns the parameters with which nginx reads it. */
function parametersFor(text: string): string[] {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const temporary = kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};\n`).join('');
  const main = `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log ${folder}/error.log;\nevents {}\n`;
  const file = `${folder}/nginx.conf`;
  writeFileSync(file, `${main}http {\naccess_log off;\n${temporary}${text}}\n`);
  return ['-p', folder, '-e', 'stderr', '-c', file];
}

/** Starts nginx with these servers, of which one has `listen 8080`. */
async function startNginx(text: string): Promise<string> {
  const address = `127.0.0.1:${await freePort()}`;
  const parameters = parametersFor(text.replace('listen 8080', `listen ${address}`));
  running = spawn(nginxPath, parameters, { stdio: 'ignore' });
  const url = `http://${address}`;
  await vi.waitFor(() => request(url, {}), { timeout: 60_000, interval: 100 });
  return url;
}

/** Stops what a group of tests has started. */
async function stopAll(): Promise<void> {
  running?.kill();
  if (running) await once(running, 'exit');
  running = undefined;
  for (const server of servers.splice(0)) server.close();
}

describe.skipIf(nginxPath === '')('resource-server/nginx.conf in nginx (skipped without nginx)', () => {
  let url: string;
  /** Replaces auth-service.js. */
  let authorize: RequestListener = (_, response) => response.end();

  beforeAll(async () => {
    const auth = await serve((message, response) => authorize(message, response));
    const backend = await serve((message, response) => {
      const { 'x-customer-id': customer, 'x-organization-id': organization, 'x-speaker-id': speaker } = message.headers;
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ customer, organization, speaker }));
    });
    const server = example('nginx.conf').replace('127.0.0.1:8081', backend).replace('127.0.0.1:9000', auth);
    url = `${await startNginx(server)}/chats/`;
  });
  afterAll(stopAll);

  const FORGED = { 'X-Customer-Id': 'forged', 'X-Organization-Id': 'forged', 'X-Speaker-Id': 'forged' };

  it('gives the backend the customer and organization of the token, and never those of the request', async () => {
    authorize = (_, response) =>
      response
        .writeHead(204, { 'X-Customer-Id': 'customer', 'X-Organization-Id': 'organization', 'X-Speaker-Id': 'agent' })
        .end();
    const { body } = await request(url, { headers: FORGED });
    expect(body).toEqual({ customer: 'customer', organization: 'organization', speaker: 'agent' });
    authorize = (_, response) => response.writeHead(204).end();
    expect((await request(url, { headers: FORGED })).body).toEqual({});
  });

  it('responds with the 401 of auth-service.js, and with 503 and Retry-After if tokens cannot be checked', async () => {
    authorize = (_, response) => response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end();
    const unauthorized = await fetch(url);
    expect([unauthorized.status, unauthorized.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    authorize = (_, response) => response.writeHead(503).end();
    const unavailable = await fetch(url);
    expect([unavailable.status, unavailable.headers.get('retry-after')]).toEqual([503, '1']);
  });
});

describe.skipIf(nginxPath === '')('resource-server/installations.conf in nginx (skipped without nginx)', () => {
  let url: string;
  beforeAll(async () => {
    const installation = (name: string) =>
      serve(({ headers: { host, 'x-forwarded-for': address } }, response) => {
        response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ name, host, address }));
      });
    const [eu, us] = [await installation('eu'), await installation('us')];
    const text = example('installations.conf').replace('127.0.0.1:3000', eu).replace('127.0.0.1:4000', us);
    url = await startNginx(text);
  });
  afterAll(stopAll);

  /** `fetch` sends no other `Host`. */
  const visit = (host: string) => plainRequest(url, { headers: { Host: host, 'X-Forwarded-For': '192.0.2.1' } });

  it('sends each host name to its installation, and no other one to any', async () => {
    for (const name of ['eu', 'us']) {
      const host = `auth.${name}.example`;
      const { status, body } = await visit(host);
      expect({ status, body }).toEqual({ status: 200, body: { name, host, address: '127.0.0.1' } });
    }
    expect((await visit('auth.other.example')).status).toBe(404);
  });
});
