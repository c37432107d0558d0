import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';
import { FORM } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { expectError, expectInvalidRequest, expectInvalidToken } from '../support/expect-error.js';
import { exchange, plainRequest, RawConnection, rawRequest } from '../support/raw-http.js';
import { ACME, ACME_ORIGIN } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

const MAX_BODY_BYTES = 16 * 1024;
const VALID_BODY = JSON.stringify(cookieBody());
/** A valid body of this number of bytes. */
const padded = (bytes: number) => VALID_BODY.padEnd(bytes, ' ');
/** A valid body with more members. */
const withMembers = (members: string) => `${VALID_BODY.slice(0, -1)},${members}}`;

const service = useService();

const expectServes = async () => expect((await service.post(TOKEN, VALID_BODY)).status).toBe(200);

/** Collects garbage. Node.js exposes the collector only after a flag, which is set here and not for the whole run. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

describe('protocol §2.4: the request body', () => {
  it.each([
    'application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'no media type',
  ])('is read as JSON also with Content-Type %s', async (type) => {
    const { status } = await service.post(TOKEN, VALID_BODY, { 'content-type': type });
    expect(status).toBe(200);
  });

  it('is read with Content-Encoding identity, and with no other', async () => {
    const response = await service.post(TOKEN, VALID_BODY, { 'content-encoding': 'br' });
    expectError(response, { status: 415, error: 'invalid_request', hint: /^Content-Encoding: / });
    for (const identity of ['identity', 'Identity'])
      expect((await service.post(TOKEN, VALID_BODY, { 'content-encoding': identity })).status).toBe(200);
  });

  it('may contain any UTF-8, also split between two packets', async () => {
    const bytes = Buffer.from(withMembers('"note":"€ 漢字 😀 \\ud800"'));
    const half = bytes.indexOf(0xf0) + 2;
    const { status } = await plainRequest(service.url + TOKEN, { method: 'POST' }, [
      bytes.subarray(0, half),
      bytes.subarray(half),
    ]);
    expect(status).toBe(200);
  });

  it('may begin with one byte order mark (RFC 8259 §8.1), but not with two', async () => {
    expect((await service.post(TOKEN, `\uFEFF${VALID_BODY}`)).status).toBe(200);
    expect((await service.post(TOKEN, `\uFEFF\uFEFF${VALID_BODY}`)).status).toBe(400);
  });

  it.each([
    ['twice', '"client_id":"acme-site"'],
    ['a second time, written with an escape', '"client_\\u0069d":"acme-site"'],
  ])('with a name %s is an invalid request', async (_what, members) => {
    expectInvalidRequest(await service.post(TOKEN, withMembers(members)), /^body: .*more than once/);
  });

  it.each([
    '"x":{"client_id":1,"grant_type":2}',
    '"__proto__":{"organization_id":"polluted","polluted":true}',
    '"constructor":{"prototype":{"polluted":true}},"toString":"x","hasOwnProperty":1,"valueOf":null',
  ])('may contain unknown fields, which are ignored: %s', async (members) => {
    const { status, body } = await service.post(TOKEN, withMembers(members));
    expect(status).toBe(200);
    expect(body.organization_id).toBe(ACME);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  it.each([
    ['grant_type', 'unsupported_grant_type'],
    ['client_id', 'invalid_request'],
    ['organization_id', 'invalid_request'],
    ['response_type', 'invalid_request'],
  ])('with the name of a prototype member as %s is rejected like any other wrong value', async (parameter, error) => {
    for (const value of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const { status, body } = await service.post(TOKEN, cookieBody({ [parameter]: value }));
      expect({ value, status, error: body.error }).toEqual({ value, status: 400, error });
    }
  });

  it('that is nested deeper than any parameter is an invalid request, and the service keeps serving', async () => {
    const nested = '['.repeat(8_000) + ']'.repeat(8_000);
    expectInvalidRequest(await service.post(TOKEN, withMembers(`"x":${nested}`)), /^body: nested/);
    await expectServes();
  });
});

describe('protocol §2.4: the body reader', () => {
  const sendChunked = (body: string) =>
    plainRequest(service.url + TOKEN, { method: 'POST' }, [body.slice(0, 7_000), body.slice(7_000)]);
  const withLength = (body: string) => service.post(TOKEN, body);
  const transfers: [string, (body: string) => ReturnType<typeof withLength>][] = [
    ['with Content-Length', withLength],
    ['chunked', sendChunked],
  ];

  it.each(transfers)('accepts exactly 16 KiB %s', async (_how, send) => {
    expect((await send(padded(MAX_BODY_BYTES))).status).toBe(200);
  });

  it.each(transfers)('rejects one byte more %s', async (_how, send) => {
    expectError(await send(padded(MAX_BODY_BYTES + 1)), { status: 413, error: 'payload_too_large', hint: /16 KiB/ });
  });

  it('reads a body that arrives byte by byte', async () => {
    const { status } = await plainRequest(service.url + TOKEN, { method: 'POST' }, [...VALID_BODY]);
    expect(status).toBe(200);
  });

  it('counts bytes, not characters', async () => {
    const body = withMembers(`"note":"${'€'.repeat(5_500)}"`);
    expect(body.length).toBeLessThan(MAX_BODY_BYTES);
    expect((await service.post(TOKEN, body)).status).toBe(413);
  });

  it('keeps no rejected body in memory', async () => {
    const before = process.memoryUsage().arrayBuffers;
    const part = Buffer.alloc(900_000, ' ');
    const start = `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: 1000000\r\n\r\n`;
    const connections = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(service.url)));
    for (const connection of connections) connection.send(start).send(part);
    await expectServes();
    await Promise.all(connections.map((connection) => connection.sent()));
    await expectServes();
    const isFreed = () => {
      collectGarbage();
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(30_000_000);
    };
    await vi.waitFor(isFreed, { timeout: 10_000 });
    for (const connection of connections) connection.abort();
  });
});

describe('protocol §2.4: the length of the body', () => {
  const start = (length: number) => `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\nContent-Length: ${length}\r\n\r\n`;

  it('that is declared too large makes only this caller wait, until the caller disconnects', async () => {
    const connection = (await RawConnection.open(service.url)).send(start(VALID_BODY.length + 1) + VALID_BODY);
    await expectServes();
    connection.abort();
    await connection.received();
    await expectServes();
  });

  it.each([
    ['a chunk without a size', 'Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n'],
    [
      'both Transfer-Encoding and Content-Length',
      'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n',
    ],
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} '],
    ['a length in another notation', 'Content-Length: 1e3\r\n\r\n{}'],
    ['another transfer coding', 'Transfer-Encoding: gzip\r\n\r\n{}'],
  ])('that is declared with %s is an invalid request with one response', async (_what, rest) => {
    const bytes = `POST ${TOKEN} HTTP/1.1\r\nHost: auth.example\r\n${rest}`;
    const text = await (await RawConnection.open(service.url)).send(bytes).received();
    expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    expect(text).toMatch(/^HTTP\/1\.1 400 /);
    expect(text).toContain('"oauth_exception":"invalid_request"');
    await expectServes();
  });
});

describe('protocol §2.3: routing', () => {
  const GROUP = `/v2/customer/${ACME}/support/token`;

  it.each([`${TOKEN}/`, `${GROUP}/`])('ignores a trailing slash: %s', async (path) => {
    const { status, cookies } = await service.post(path, VALID_BODY);
    expect({ status, cookies: cookies.length }).toEqual({ status: 200, cookies: 2 });
  });

  it.each([
    '/V2/customer/token',
    `/v2/customer/${ACME}/support/TOKEN`,
    '/v2/customer/token//',
    '/v2/customer/./token',
    '/v2/x/../customer/token',
    '/v2/customer/token;x=1',
    '/v2/customer/a/b/c/token',
    '/%zz',
    '/v2/customer/token#fragment',
    '/v2\\customer\\token',
  ])('finds no route for %s', async (path) => {
    const response = await exchange(service.url, rawRequest(`POST ${path}`, VALID_BODY));
    expectError(response, { status: 404, error: 'not_found', hint: undefined });
  });

  it.each([`/v2/customer/${ACME}/%zz/token`, '/v2/customer/%E0%A4%A/support/token'])(
    'rejects broken percent-encoding as an invalid request: %s',
    async (path) => {
      const response = await exchange(service.url, rawRequest(`POST ${path}`, VALID_BODY));
      expectInvalidRequest(response, /percent-encoding/);
    },
  );

  it.each(['http://auth.example', 'http://user@elsewhere.example:8443'])(
    'accepts an absolute target with any authority: %s',
    async (authority) => {
      const response = await exchange(service.url, rawRequest(`POST ${authority}${TOKEN}?x=1`, VALID_BODY));
      expect(response.status).toBe(200);
    },
  );

  it.each([
    '*',
    'amqp://auth.example',
    'ftp://auth.example/v2/customer/token',
    'http://auth.example:99999999/',
    'http://[::%31]/v2/customer/token',
  ])('finds no route for %s', async (target) => {
    for (const method of ['OPTIONS', 'POST']) {
      const response = await exchange(service.url, rawRequest(`${method} ${target}`));
      expectError(response, { status: 404, error: 'not_found', hint: undefined });
    }
  });

  it.each(['?%zz', '?__proto__[x]=1', '?grant_type=unknown&client_id=rival-site'])(
    'ignores the query string: %s',
    async (query) => expect((await service.post(TOKEN + query, VALID_BODY)).status).toBe(200),
  );

  it('takes no parameter from the query', async () => {
    const response = await service.post(`${TOKEN}?grant_type=cookie`, {});
    expectInvalidRequest(response, 'grant_type: required');
  });
});

describe('protocol §2.8 and §2.6: a repeated header', () => {
  it('is rejected if it is Origin', async () => {
    const headers = [`Origin: ${ACME_ORIGIN}`, `Origin: ${ACME_ORIGIN}`];
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, VALID_BODY, headers));
    expectInvalidRequest(response, /^Origin: /);
  });

  it('is rejected if it is Content-Type of a body that may be a form, because the first could say JSON', async () => {
    const types = ['Content-Type: application/json', `Content-Type: ${FORM}`];
    for (const headers of [types, types.toReversed()]) {
      const response = await exchange(service.url, rawRequest('POST /v2/token', 'client_id=acme-site', headers));
      expectInvalidRequest(response, 'Content-Type: given more than once');
    }
    const response = await exchange(service.url, rawRequest('POST /v2/customer/end_sessions', '{}', types));
    expectInvalidToken(response); // a route that reads JSON only ignores the header
  });

  it.each(['identity', 'gzip'])('is rejected if it is Content-Encoding: identity and %s', async (second) => {
    const headers = ['Content-Encoding: identity', `Content-Encoding: ${second}`];
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, VALID_BODY, headers));
    expectError(response, { status: 415, error: 'invalid_request', hint: /^Content-Encoding: / });
  });

  it('is rejected if it is Content-Length, also with the same number', async () => {
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, VALID_BODY, ['Content-Length: 2']));
    expectError(response, { status: 400, error: 'invalid_request', hint: /^HTTP: / });
  });

  it('is one list of cookies if it is Cookie, as HTTP/2 proxies may split it (RFC 9113 §8.2.3)', async () => {
    const { cookies, body } = await service.post(TOKEN, VALID_BODY);
    const headers = cookies.map((line) => `Cookie: ${line.split(';')[0]}`);
    expect(headers).toHaveLength(2);
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, VALID_BODY, headers));
    expect(response.body.entity_id).toBe(body.entity_id);
  });

  it('is ignored if it is X-Request-Id', async () => {
    const headers = ['X-Request-Id: request-one', 'X-Request-Id: request-two'];
    const response = await exchange(service.url, rawRequest(`POST ${TOKEN}`, VALID_BODY, headers));
    expect(response.status).toBe(200);
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/);
  });
});

describe('the Host header and the version of HTTP (RFC 9112 §3.2, §2.3)', () => {
  const get = (version: string, ...headers: string[]) =>
    [`GET /.well-known/jwks.json${version}`, ...headers, 'Connection: close', '', ''].join('\r\n');

  it.each([
    ['two Hosts', ' HTTP/1.1', ['Host: auth.example', 'X: y', 'HOST: evil.example']],
    ['two Hosts in HTTP/1.0', ' HTTP/1.0', ['Host: auth.example', 'Host: evil.example']],
    ['no Host', ' HTTP/1.1', ['X: y']],
    ['two names in one Host', ' HTTP/1.1', ['Host: auth.example, evil.example']],
    ['a Host with a path', ' HTTP/1.1', ['Host: auth.example/path']],
    ['a Host with an open bracket', ' HTTP/1.1', ['Host: [::1']],
    ['a Host with userinfo', ' HTTP/1.1', ['Host: user@auth.example']],
    ['a Host with a port that is not a number', ' HTTP/1.1', ['Host: auth.example:http']],
    ['HTTP/0.9', '', []],
    ['HTTP/2.0 in the syntax of HTTP/1.1', ' HTTP/2.0', ['Host: auth.example']],
    ['101 header lines', ' HTTP/1.1', ['Host: auth.example', ...Array.from({ length: 100 }, () => 'X: y')]],
  ])('are rejected on both ports in a request with %s', async (what, version, headers) => {
    const status = what.includes('101') ? 431 : 400;
    for (const url of [service.url, service.managementUrl]) {
      const response = await exchange(url, get(version, ...headers));
      expectError(response, { status, error: 'invalid_request', hint: /^HTTP: / });
    }
  });

  it.each([
    'http://',
    'http://?a=b',
    'http:///.well-known/jwks.json',
    'https://#a',
    'http://[::1]a:/',
    'a:b',
    'http://:80/',
  ])('are not enough for the target %s, which is no URL with a host', async (target) => {
    for (const url of [service.url, service.managementUrl]) {
      const response = await exchange(url, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      expectError(response, { status: 400, error: 'invalid_request', hint: /^HTTP: / });
    }
  });

  it.each([
    ['an empty Host, because AUTH_URL names the service', ' HTTP/1.1', ['Host:']],
    ['an IPv6 address and a port', ' HTTP/1.1', ['Host: [::1]:3000']],
    ['HTTP/1.0 without a Host', ' HTTP/1.0', []],
    ['99 header lines', ' HTTP/1.1', ['Host: auth.example', ...Array.from({ length: 97 }, () => 'X: y')]],
  ])('are accepted in a request with %s', async (_what, version, headers) => {
    expect((await exchange(service.url, get(version, ...headers))).status).toBe(200);
  });
});
