import { once } from 'node:events';
import { get, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { requireToken } from '@customer-authorization/token-verifier/express';
import { TokenGuard } from '@customer-authorization/token-verifier/nestjs';
import { Controller, Get, Req, UseGuards } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import express, { type ErrorRequestHandler, type Request } from 'express';
import { describe, expect, it } from 'vitest';
import type { AuthorizedRequest } from '../src/express.js';
import { VerifierTest } from './support/started-verifier.js';

const test = new VerifierTest();

type Verifier = ReturnType<typeof test.create>;

async function expressApplication(verifier: Verifier) {
  const application = express();
  application.get('/me', requireToken(verifier), (request: Request & AuthorizedRequest, response) => {
    response.json({ customer: request.auth?.sub, isUser: request.auth?.userVerified });
  });
  const handle: ErrorRequestHandler = (error, _request, response, _next) =>
    void response.status(error.statusCode).set(error.headers).json({ code: error.code });
  const server = application.use(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, stop: () => server.close() };
}

async function nestApplication(verifier: Verifier) {
  @Controller('me')
  class MeController {
    @Get()
    @UseGuards(new TokenGuard(verifier))
    me(@Req() request: AuthorizedRequest) {
      return { customer: request.auth?.sub, isUser: request.auth?.userVerified };
    }
  }
  const module = await Test.createTestingModule({ controllers: [MeController] }).compile();
  const application = module.createNestApplication({ logger: false });
  await application.listen(0, '127.0.0.1');
  return { server: application.getHttpServer() as Server, stop: () => application.close() };
}

describe.each([
  ['Express', expressApplication, { code: 'expired' }],
  ['NestJS', nestApplication, { statusCode: 401, message: 'Unauthorized' }],
])('the adapter for %s', (_, start, bodyOfExpired) => {
  async function request(verifier: Verifier, authorization?: string) {
    const { server, stop } = await start(verifier);
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/me`;
    const response = await fetch(url, { headers: authorization === undefined ? {} : { authorization } });
    const body = await response.json();
    await stop();
    return { status: response.status, headers: response.headers, body };
  }

  it('puts the claims into request.auth', async () => {
    const verifier = await test.start();
    for (const [scheme, user_verified] of [
      ['Bearer', undefined],
      ['bearer', true],
    ])
      expect(await request(verifier, `${scheme} ${await test.token({ user_verified })}`)).toMatchObject({
        status: 200,
        body: { customer: 'customer-1', isUser: user_verified === true },
      });
  });

  it('responds with 401 and a challenge to a token that is not valid, without the reason', async () => {
    const verifier = await test.start();
    const token = await test.token({ exp: test.clock.seconds() });
    const { status, headers, body } = await request(verifier, `Bearer ${token}`);
    expect({ status, body }).toEqual({ status: 401, body: bodyOfExpired });
    expect(headers.get('WWW-Authenticate')).toBe('Bearer error="invalid_token"');
  });

  it('responds with 503 and Retry-After to a token of a key that was published after the keys were read', async () => {
    const verifier = await test.start();
    await test.issuer.addKey();
    const { status, headers } = await request(verifier, `Bearer ${await test.token()}`);
    expect([status, headers.get('Retry-After'), headers.get('WWW-Authenticate')]).toEqual([503, '30', null]);
    test.clock.advance(30);
    expect((await request(verifier, `Bearer ${await test.token()}`)).status).toBe(200);
  });

  it.each([undefined, '', 'Bearer', 'Basic YTpi', 'Bearer a b', 'Bearer a, Bearer b'])(
    'responds with 401 and a challenge without an error to the header %j',
    async (authorization) => {
      const { status, headers } = await request(await test.start(), authorization);
      expect(status).toBe(401);
      expect(headers.get('WWW-Authenticate')).toBe('Bearer');
    },
  );

  it('responds with 401 to a request with two Authorization headers, also if the first has a valid token', async () => {
    const verifier = await test.start();
    const { server, stop } = await start(verifier);
    const { port } = server.address() as AddressInfo;
    const valid = `Bearer ${await test.token()}`;
    const statusOf = (...authorization: string[]) =>
      new Promise((resolve, reject) => {
        // Node's client sends a header for each value of a list of names and values
        const headers = ['Host', 'api.example', ...authorization.flatMap((value) => ['Authorization', value])];
        get({ port, host: '127.0.0.1', path: '/me', headers, agent: false }, (response) =>
          resolve(response.resume().statusCode),
        ).on('error', reject);
      });
    expect(await statusOf(valid)).toBe(200);
    for (const values of [
      [valid, valid],
      [valid, 'Basic YTpi'],
      [valid, ''],
      ['Bearer x', valid],
    ])
      expect(await statusOf(...values)).toBe(401);
    await stop();
  });

  it('responds with 503 and Retry-After while the verifier cannot decide', async () => {
    const verifier = await test.start();
    test.clock.set(61);
    const { status, headers } = await request(verifier, `Bearer ${await test.token()}`);
    expect(status).toBe(503);
    expect(headers.get('Retry-After')).toBe('5');
  });
});
