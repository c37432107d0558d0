import { HttpCode, Module, Post, type Type } from '@nestjs/common';
import { IsString } from 'class-validator';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OWN_ORGANIZATION, SILENT_SITE, SITE, UNLISTED_SITE } from '../../packages/conformance-kit/src/kit-registry.js';
import { startTestService, type TestService } from '../../packages/conformance-kit/src/test-service.js';
import {
  ApiRoute,
  ClientRequest,
  type Grant,
  GrantBody,
  type GrantResult,
  GrantType,
  OAuthError,
  PublicController,
} from '../../src/public/grant.js';
import { expectError } from '../support/expect-error.js';

const ROUTE = '/v2/customer/letter';

class StartBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;
}

@GrantType('letter', { body: GrantBody, optIn: true })
class LetterGrant implements Grant {
  grant = async (): Promise<GrantResult> => Promise.reject(OAuthError.invalidGrant('no letter'));
}

/** A route that belongs to a grant. */
function moduleWith(options: { grant?: string }): Type {
  @PublicController('v2/customer/letter')
  class LetterController {
    @Post()
    @ApiRoute({ summary: 'Send a letter' })
    @HttpCode(200)
    start(@ClientRequest(StartBody, options) _request: ClientRequest<StartBody>): object {
      return {};
    }
  }

  @Module({ controllers: [LetterController], providers: [LetterGrant] })
  class LetterModule {}
  return LetterModule;
}

describe('a route that declares its grant', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService({ modules: [moduleWith({ grant: 'letter' })] });
  });
  afterAll(() => service?.stop());

  const send = (client_id: string) => service.post(ROUTE, { client_id, organization_id: OWN_ORGANIZATION });

  it.each([UNLISTED_SITE, SILENT_SITE])(
    'refuses %s, because optIn of the grant requires that clients list it',
    async (client) => {
      const hint = 'client_id: may not use the grant letter';
      expectError(await send(client), { status: 400, error: 'unauthorized_client', hint });
      expect((await send(SITE)).status).toBe(200);
    },
  );

  it('stops the start if no grant has the name', async () => {
    const start = startTestService({ modules: [moduleWith({ grant: 'letters' })] });
    await expect(start).rejects.toThrow(
      'LetterController.start: no grant has the name letters; use the name in @GrantType',
    );
  });
});
