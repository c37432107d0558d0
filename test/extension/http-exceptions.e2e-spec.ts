import {
  type CallHandler,
  type CanActivate,
  ConflictException,
  ForbiddenException,
  Get,
  GoneException,
  Header,
  HttpException,
  Injectable,
  Module,
  type NestInterceptor,
  NotFoundException,
  Param,
  ParseIntPipe,
  PayloadTooLargeException,
  Post,
  Res,
  ServiceUnavailableException,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { IsString } from 'class-validator';
import type { Response } from 'express';
import { throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import {
  ApiRoute,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  PublicController,
} from '../../src/public/grant.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { exchange, rawRequest } from '../support/raw-http.js';
import { ACME_SITE } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

const SECRET = 'internal-host.example:5432';

/** An error as the package `http-errors` makes them, which `body-parser` and other middleware throw. */
const httpError = (status: number, message: string) =>
  Object.assign(new Error(message), { status, statusCode: status, expose: status < 500 });

/** An HTTP exception of another copy of NestJS, as an extension has if it depends on another version of it. */
class ExceptionOfOtherCopy extends Error {
  getStatus = () => 423;
  getResponse = () => ({ message: SECRET });
}

type Case = [status: number, error: string, thrown: () => unknown, headers?: Record<string, string>];

const KEPT: Case[] = [
  [400, 'invalid_request', () => new HttpException(SECRET, 400)],
  [
    401,
    'invalid_token',
    () => new UnauthorizedException(SECRET),
    { 'www-authenticate': 'Bearer error="invalid_token"' },
  ],
  [402, 'invalid_request', () => new HttpException({ statusCode: 500, secret: SECRET }, 402)],
  [
    403,
    'insufficient_scope',
    () => new ForbiddenException(SECRET),
    { 'www-authenticate': 'Bearer error="insufficient_scope"' },
  ],
  [404, 'not_found', () => new NotFoundException(SECRET)],
  [405, 'method_not_allowed', () => new HttpException(SECRET, 405), { allow: '' }],
  [408, 'invalid_request', () => new HttpException(SECRET, 408)],
  [409, 'conflict', () => new ConflictException({ message: SECRET, error: 'invalid_token' })],
  [410, 'invalid_request', () => new GoneException(SECRET)],
  [413, 'payload_too_large', () => new PayloadTooLargeException(SECRET)],
  [415, 'invalid_request', () => new HttpException(SECRET, 415)],
  [423, 'invalid_request', () => new ExceptionOfOtherCopy(SECRET)],
  [422, 'invalid_request', () => new HttpException([SECRET], 422)],
  [429, 'temporarily_unavailable', () => new HttpException(SECRET, 429), { 'retry-after': '1' }],
  [499, 'invalid_request', () => new HttpException(SECRET, 499)],
  [404, 'not_found', () => httpError(404, SECRET)],
  [413, 'payload_too_large', () => httpError(413, SECRET)],
  [500, 'server_error', () => new HttpException(SECRET, 500)],
  [501, 'server_error', () => new HttpException(SECRET, 501)],
  [502, 'server_error', () => new HttpException(SECRET, 502, { cause: new Error(SECRET) })],
  [503, 'temporarily_unavailable', () => new ServiceUnavailableException(SECRET), { 'retry-after': '1' }],
  [504, 'server_error', () => httpError(504, SECRET)],
];

/** What is no error response: its status is no status of an error, or it is that of another server. */
const UNEXPECTED: [thrown: string, thrown: () => unknown][] = [
  ['an exception with the status 101', () => new HttpException(SECRET, 101)],
  ['an exception with the status 200', () => new HttpException(SECRET, 200)],
  ['an exception with the status 204', () => new HttpException(SECRET, 204)],
  ['an exception with the status 302', () => new HttpException(SECRET, 302)],
  ['an exception with the status 600', () => new HttpException(SECRET, 600)],
  ['an exception with the status 404.5', () => new HttpException(SECRET, 404.5)],
  ['an exception with a text as its status', () => new HttpException(SECRET, '404' as unknown as number)],
  ['an error of another server', () => Object.assign(new Error(SECRET), { status: 404, statusCode: 404 })],
  ['a text', () => SECRET],
  ['an object with a status', () => ({ status: 404, message: SECRET })],
  ['nothing', () => undefined],
];

let thrown: () => unknown;

const described = ApiRoute({ summary: 'Throw', response: '*/*' });

@Injectable()
class ThrowingGuard implements CanActivate {
  canActivate(): boolean {
    throw thrown();
  }
}

@Injectable()
class RefusingGuard implements CanActivate {
  canActivate = (): boolean => false;
}

@Injectable()
class ThrowingInterceptor implements NestInterceptor {
  intercept = (_context: unknown, _next: CallHandler) => throwError(thrown);
}

@PublicController('throwing')
class ThrowingController {
  @Get('sync')
  @described
  sync(): never {
    throw thrown();
  }

  @Get('async')
  @described
  async async(): Promise<never> {
    await Promise.resolve();
    throw thrown();
  }

  @Get('guard')
  @described
  @UseGuards(ThrowingGuard)
  guarded() {}

  @Get('refusing_guard')
  @described
  @UseGuards(RefusingGuard)
  refused() {}

  @Get('interceptor')
  @described
  @UseInterceptors(ThrowingInterceptor)
  intercepted() {}

  @Get('pipe/:number')
  @described
  piped(@Param('number', ParseIntPipe) _number: number) {}

  @Get('headers')
  @described
  @Header('Content-Type', 'text/csv')
  @Header('Cache-Control', 'public, max-age=600')
  withHeaders(@Res({ passthrough: true }) response: Response): never {
    response.setHeader('Retry-After', '30').setHeader('Content-Disposition', 'attachment').setHeader('ETag', '"1"');
    throw thrown();
  }

  @Post('described')
  @ApiRoute({
    summary: 'Throw',
    errors: ['402 invalid_request', '410 invalid_request', '422 invalid_request', '502 server_error'],
  })
  declared(): never {
    throw thrown();
  }
}

class GuessBody extends GrantBody {
  @IsString()
  code!: string;
}

@GrantType('throwing', { body: GuessBody, attempts: { per: ['code'], limit: '2/60' } })
class ThrowingGrant implements Grant<GuessBody> {
  async grant(_request: GrantRequest<GuessBody>): Promise<GrantResult> {
    throw thrown();
  }
}

@Module({ controllers: [ThrowingController], providers: [ThrowingGrant] })
class ThrowingModule {}

describe('an HTTP exception of NestJS that an extension throws', () => {
  const output = new OutputCapture();
  const environment = { RATE_LIMIT: 'tokens=60000/60' };
  const service = useService(() => ({ modules: [ThrowingModule], environment, log: output.log }));
  /** Without the comparison with the OpenAPI document, which does not have all these statuses. */
  const get = (place: string) => exchange(service.url, rawRequest(`GET /throwing/${place}`));
  const guess = (code: string) =>
    exchange(
      service.url,
      rawRequest(`POST ${TOKEN}`, JSON.stringify({ grant_type: 'throwing', client_id: ACME_SITE, code })),
    );
  const lineOf = (response: TestResponse) =>
    JSON.parse(output.about(response.headers.get('x-request-id') ?? '').at(-1) as string);

  function expectErrorOf(response: TestResponse, [status, error, _thrown, headers = {}]: Case): void {
    expectError(response, { status, error, hint: undefined });
    expect(Object.fromEntries(response.headers)).toMatchObject(headers);
    expect(response.text).not.toContain(SECRET);
  }

  it.each(KEPT)('keeps its status %i in a route, as %s, and its message is only in the log', async (...each) => {
    thrown = each[2];
    for (const place of ['sync', 'async', 'guard', 'interceptor']) {
      const response = await get(place);
      expectErrorOf(response, each);
      expect(JSON.stringify(lineOf(response))).toContain(each[0] === 402 || each[0] === 422 ? 'Exception' : SECRET);
      if (each[0] >= 500) expect(lineOf(response).cause).toContain(SECRET);
    }
  });

  it.each(UNEXPECTED)('is 500 if it is %s, and the log has the status', async (_description, of) => {
    thrown = of;
    const response = await get('async');
    expectErrorOf(response, [500, 'server_error', of]);
    expect(lineOf(response)).toMatchObject({ level: 'error', status: 500, error: 'server_error' });
  });

  it('is 403 if a guard refuses, and 400 if a pipe refuses a parameter', async () => {
    expectErrorOf(await get('refusing_guard'), [403, 'insufficient_scope', thrown]);
    expectErrorOf(await get('pipe/one'), [400, 'invalid_request', thrown]);
  });

  it('keeps the Retry-After of the route, and no other header of its response', async () => {
    thrown = () => new ServiceUnavailableException(SECRET);
    const response = await get('headers');
    expectErrorOf(response, [503, 'temporarily_unavailable', thrown, { 'retry-after': '30' }]);
    for (const name of ['content-disposition', 'etag']) expect(response.headers.has(name)).toBe(false);
  });

  it('has a status that the route declares in the OpenAPI document', async () => {
    thrown = () => new GoneException(SECRET);
    expectErrorOf(await service.post('/throwing/described', {}), [410, 'invalid_request', thrown]);
    const { body } = await service.send('GET', '/openapi.json');
    expect(Object.keys(body.paths['/throwing/described'].post.responses)).toEqual(
      expect.arrayContaining(['402', '410', '422', '502']),
    );
  });

  it('keeps its status in a grant, and counts as a refused proof below 500, except 429', async () => {
    const statuses = async (code: string, of: () => unknown) => {
      thrown = of;
      beginWindow(service);
      const responses: TestResponse[] = [];
      for (let i = 0; i < 3; i++) responses.push(await guess(code));
      return responses.map(({ status }) => status);
    };
    expect(await statuses('one', () => new NotFoundException(SECRET))).toEqual([404, 404, 429]);
    expect(await statuses('two', () => new UnauthorizedException())).toEqual([401, 401, 429]);
    expect(await statuses('three', () => httpError(410, SECRET))).toEqual([410, 410, 429]);
    expect(await statuses('four', () => new HttpException(SECRET, 502))).toEqual([502, 502, 502]);
    expect(await statuses('five', () => new Error(SECRET))).toEqual([500, 500, 500]);
  });
});
