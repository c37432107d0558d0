import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findProgram } from '../../scripts/debian-packages.js';
import { request } from '../support/test-service.js';

const NGINX_CONF = join(import.meta.dirname, '../../examples/integrating/resource-server/nginx.conf');

const nginxPath = findProgram(['nginx'], ['/usr/sbin']) ?? '';

describe.skipIf(nginxPath === '')('resource-server/nginx.conf in nginx (skipped without nginx)', () => {
  const servers: Server[] = [];
  let folder: string;
  let nginx: ReturnType<typeof spawn>;
  let url: string;
  /** Replaces auth-service.js. */
  let authorize: RequestListener = (_, response) => response.end();

  async function listen(listener: RequestListener): Promise<number> {
    const server = createServer(listener).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  /** Writes a configuration with these servers, and returns the parameters with which nginx reads it. */
  function parametersFor(servers: string): string[] {
    const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const temporary = kinds.map((kind) => `${kind}_temp_path ${folder}/${kind};\n`).join('');
    const main = `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log ${folder}/error.log;\nevents {}\n`;
    const file = `${folder}/nginx.conf`;
    writeFileSync(file, `${main}http {\naccess_log off;\n${temporary}${servers}}\n`);
    return ['-p', folder, '-e', 'stderr', '-c', file];
  }

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nginx-'));
    const authPort = await listen((message, response) => authorize(message, response));
    const backendPort = await listen((message, response) => {
      const { 'x-customer-id': customer, 'x-organization-id': organization, 'x-speaker-id': speaker } = message.headers;
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ customer, organization, speaker }));
    });
    const port = await listen(() => {});
    servers.pop()?.close();
    url = `http://127.0.0.1:${port}/chats/`;
    const server = readFileSync(NGINX_CONF, 'utf8')
      .replace('listen 8080', `listen 127.0.0.1:${port}`)
      .replace('127.0.0.1:8081', `127.0.0.1:${backendPort}`)
      .replace('127.0.0.1:9000', `127.0.0.1:${authPort}`);
    nginx = spawn(nginxPath, parametersFor(server), { stdio: 'ignore' });
    await vi.waitFor(() => request(url, {}), { timeout: 60_000, interval: 100 });
  });
  afterAll(() => {
    nginx?.kill();
    for (const server of servers) server.close();
    rmSync(folder, { recursive: true });
  });

  it('is valid as it is', () => {
    const parameters = parametersFor(readFileSync(NGINX_CONF, 'utf8'));
    execFileSync(nginxPath, ['-t', ...parameters], { stdio: 'pipe' });
  });

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
