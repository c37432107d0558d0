import { Get, Module, Res } from '@nestjs/common';
import type { Response } from 'express';
import { expect, it } from 'vitest';
import { ApiRoute, PublicController } from '../../src/public/grant.js';
import { startTestService } from '../support/test-service.js';

/** The OpenAPI document does not have the status of its response. */
@PublicController('undocumented')
class UndocumentedController {
  @Get()
  @ApiRoute({ summary: 'Get an undocumented response' })
  get(@Res({ passthrough: true }) response: Response): object {
    response.status(206);
    return {};
  }
}

@Module({ controllers: [UndocumentedController] })
class UndocumentedModule {}

it('a test fails if a response does not match the OpenAPI document', async () => {
  const { fetch } = globalThis;
  const service = await startTestService({ modules: [UndocumentedModule] });
  const violation = 'get /undocumented 206: a status that the OpenAPI document does not have';
  await expect(service.send('GET', '/undocumented')).rejects.toThrow(violation);
  await expect(globalThis.fetch(`${service.url}/undocumented`)).rejects.toThrow(violation);
  await service.stop();
  expect(globalThis.fetch).toBe(fetch);
});
