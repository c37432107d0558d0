import { Delete, Get, Header, HttpCode, HttpStatus, Module, Res } from '@nestjs/common';
import { IsString } from 'class-validator';
import type { Response } from 'express';
import { describe, expect, it } from 'vitest';
import { ApiRoute, PublicController } from '../../src/public/grant.js';
import { RawConnection } from '../support/raw-http.js';
import { startTestService } from '../support/test-service.js';
import { useService } from '../support/use-service.js';

class Text {
  @IsString()
  text!: string;
}

@PublicController('empty')
class EmptyController {
  @Delete('no_content')
  @HttpCode(204)
  @ApiRoute({ summary: 'Respond without a result' })
  noContent() {}

  @Get('with_result')
  @HttpCode(204)
  @Header('Content-Type', 'text/csv')
  @ApiRoute({ summary: 'Respond with a result that has no place', response: Text })
  withResult(): Text {
    return { text: 'lost' };
  }

  @Get('reset_content')
  @HttpCode(205)
  @ApiRoute({ summary: 'Respond with 205' })
  resetContent() {}

  @Get('not_modified')
  @HttpCode(304)
  @ApiRoute({ summary: 'Respond with 304' })
  notModified() {}

  @Get('decided_late')
  @HttpCode(204)
  @ApiRoute({ summary: 'Decide in the handler' })
  async decidedLate(@Res({ passthrough: true }) response: Response): Promise<void> {
    response.status(204);
  }

  @Get('nothing')
  @ApiRoute({ summary: 'Respond with 200 without a result' })
  nothing() {}
}

@Module({ controllers: [EmptyController] })
class EmptyModule {}

describe('a response without content', () => {
  const service = useService({ modules: [EmptyModule] });

  it.each([
    ['DELETE', 'no_content', 204],
    ['GET', 'with_result', 204],
    ['GET', 'decided_late', 204],
    ['GET', 'reset_content', 205],
    ['GET', 'not_modified', 304],
    ['HEAD', 'with_result', 204],
    ['HEAD', 'not_modified', 304],
  ])('has no body and no Content-Type, and the other headers of each response: %s %s', async (method, path, status) => {
    const response = await service.send(method, `/empty/${path}`);
    expect({ status: response.status, text: response.text, body: response.body }).toEqual({
      status,
      text: '',
      body: undefined,
    });
    expect(response.headers.get('content-type')).toBeNull();
    expect(response.headers.get('content-length')).toBe(status === 205 ? '0' : null);
    expect(response.headers.get('transfer-encoding')).toBeNull();
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    expect(response.headers.get('x-request-id')).toBeTruthy();
  });

  it('sends no byte after its headers, so that the next response on the connection is read correctly', async () => {
    const get = (path: string, more = '') => `GET /empty/${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;
    const requests = get('with_result') + get('reset_content') + get('not_modified', 'Connection: close\r\n');
    const text = await (await RawConnection.open(service.url)).send(requests).received();
    const heads = text.split('\r\n\r\n').filter((head) => head !== '');
    expect(heads.map((head) => head.split('\r\n', 1)[0])).toEqual([
      expect.stringContaining(' 204 '),
      expect.stringContaining(' 205 '),
      expect.stringContaining(' 304 '),
    ]);
  });

  it('is described without content in the OpenAPI document', async () => {
    const { paths } = (await service.send('GET', '/openapi.json')).body;
    const contentOf = (path: string, method: string, status: number) =>
      Object.keys(paths[`/empty/${path}`][method].responses[status]);
    expect(contentOf('no_content', 'delete', 204)).toEqual(['description']);
    expect(contentOf('with_result', 'get', 204)).toEqual(['description']);
    expect(contentOf('reset_content', 'get', 205)).toEqual(['description']);
    expect(contentOf('not_modified', 'get', 304)).toEqual(['description']);
  });

  it('has an empty object with another status, and none for HEAD', async () => {
    const { status, body, headers } = await service.send('GET', '/empty/nothing');
    expect([status, body, headers.get('content-length')]).toEqual([200, {}, '2']);
    const head = await service.send('HEAD', '/empty/nothing');
    expect([head.status, head.text, head.headers.get('content-length')]).toEqual([200, '', '2']);
  });

  it.each([99, HttpStatus.SWITCHING_PROTOCOLS, 404, 600])(
    'cannot have the status %i: the service does not start',
    async (status) => {
      @PublicController('faulty')
      class FaultyController {
        @Get()
        @HttpCode(status)
        @ApiRoute({ summary: 'Respond' })
        get() {}
      }
      @Module({ controllers: [FaultyController] })
      class FaultyModule {}
      await expect(startTestService({ modules: [FaultyModule] })).rejects.toThrow(
        `FaultyController.get: @HttpCode(${status}) is no status of a success; choose one from 200 to 399`,
      );
    },
  );
});
