import { Get, Module } from '@nestjs/common';
import { IsString } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { OutputCapture } from '../../packages/conformance-kit/src/output-capture.js';
import {
  ApiRoute,
  type Grant,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  GrantType,
  OAuthError,
  PublicController,
} from '../../src/public/grant.js';
import { TOKEN } from '../support/cookie-grant.js';
import { expectError } from '../support/expect-error.js';
import { beginWindow } from '../support/limit-windows.js';
import { ACME_SITE } from '../support/test-registry.js';
import { useService } from '../support/use-service.js';

class PollBody extends GrantBody {
  @IsString()
  state!: keyof typeof ERRORS;
}

const ERRORS = {
  authorization_pending: OAuthError.authorizationPending,
  slow_down: OAuthError.slowDown,
  expired_token: OAuthError.expiredToken,
  access_denied: OAuthError.accessDenied,
};
const DESCRIPTIONS = {
  authorization_pending: 'The authorization request is still pending',
  slow_down: 'The authorization request is still pending; poll less often',
  expired_token: 'The authorization request has expired',
  access_denied: 'The authorization request was denied',
};

@GrantType('device', { body: PollBody, polling: true, attempts: { per: ['state'], limit: '2/60' } })
class DeviceGrant implements Grant<PollBody> {
  async grant({ body }: GrantRequest<PollBody>): Promise<GrantResult> {
    throw ERRORS[body.state]();
  }
}

@GrantType('undeclared', { body: PollBody })
class UndeclaredGrant extends DeviceGrant {}

@PublicController('pending')
class PendingController {
  @Get()
  @ApiRoute({ summary: 'Pend' })
  get(): never {
    throw OAuthError.authorizationPending();
  }
}

@Module({ providers: [DeviceGrant, UndeclaredGrant], controllers: [PendingController] })
class PollingModule {}

describe('a grant whose client polls', () => {
  const service = useService(() => {
    const environment = { RATE_LIMIT: 'tokens=60000/60' };
    return { modules: [PollingModule], environment, log: output.log };
  });
  const output = new OutputCapture();

  const poll = (grant_type: string, state: string) => service.post(TOKEN, { grant_type, client_id: ACME_SITE, state });

  it('responds with the errors of RFC 8628 for a grant that declares polling', async () => {
    for (const [error, description] of Object.entries(DESCRIPTIONS)) {
      expectError(await poll('device', error), { status: 400, error, description, hint: undefined });
    }
  });

  it('does not count a pending request as refused, but counts the others', async () => {
    beginWindow(service);
    const statuses = async (state: string) => {
      const found: number[] = [];
      for (let i = 0; i < 3; i++) found.push((await poll('device', state)).status);
      return found;
    };
    expect(await statuses('authorization_pending')).toEqual([400, 400, 400]);
    expect(await statuses('slow_down')).toEqual([400, 400, 400]);
    expect(await statuses('expired_token')).toEqual([400, 400, 429]);
  });

  it.each([
    [
      'a grant without polling',
      () => poll('undeclared', 'slow_down'),
      'undeclared: slow_down needs polling: true in @GrantType',
    ],
    ['a route', () => service.send('GET', '/pending'), 'authorization_pending: only a grant may throw it'],
  ])('responds 500 if %s throws such an error, and the log says why', async (_case, send, message) => {
    const response = await send();
    expectError(response, { status: 500, error: 'server_error', hint: undefined });
    expect(output.about(response.headers.get('x-request-id') as string).join()).toContain(message);
  });
});
