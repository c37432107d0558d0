import { HttpCode, Post, Req, Res } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import type { Request, Response } from 'express';
import { MigrationState } from '../access-token/migration-state.js';
import { readBody } from '../oauth/body-reader.js';
import { parseJsonObject } from '../oauth/json-object.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { Optional, readParameters } from '../oauth/parameters.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';
import { RateLimits } from '../platform/rate-limit/rate-limits.js';
import { requestContext } from '../platform/request-context/request-context.js';
import { UUID } from '../platform/uuid.js';
import { admittingOrganization } from '../registry/admitting-organization.js';
import { Registry } from '../registry/registry.js';
import { ForgottenBrowsers } from './forgotten-browsers.js';
import { GROUP_ID, GROUP_ID_RULE } from './group-id.js';
import { IdentityCookies } from './identity-cookies.js';

/** The parameters of protocol §4.13. */
class ForgetBody {
  @IsString()
  client_id: string;

  @Matches(UUID, { message: 'must be a UUID in lower case' })
  organization_id: string;

  /** If omitted, the browser is forgotten in the whole organization. */
  @Optional()
  @Matches(GROUP_ID, { message: GROUP_ID_RULE })
  group_id?: string;
}

/** Lets a browser be forgotten by an organization (protocol §4.13). */
@PublicController('v2/customer/forget')
export class ForgetController {
  constructor(
    private readonly registry: Registry,
    private readonly limits: RateLimits,
    private readonly migration: MigrationState,
    private readonly cookies: IdentityCookies,
    private readonly browsers: ForgottenBrowsers,
  ) {}

  @Post()
  @ApiRoute({ summary: 'Forget this browser in an organization', body: ForgetBody, errorStatuses: [429] })
  @HttpCode(200)
  async forget(@Req() request: Request, @Res({ passthrough: true }) response: Response): Promise<object> {
    const body = readParameters(ForgetBody, parseJsonObject(await readBody(request)));
    const { cookie, origin } = request.headers;
    const client = this.registry.clientCalling(body.client_id, origin);
    requestContext.set({ clientId: client.clientId });
    const waitSeconds = this.limits.take('tokens', client.clientId);
    if (waitSeconds > 0) throw OAuthError.rateLimited(waitSeconds, 'tokens');
    const { id: organizationId } = admittingOrganization(this.registry, body.organization_id, client);
    await this.migration.assertComplete();
    const leadsNowhere = await this.browsers.forget(this.cookies.read(cookie, origin), organizationId, body.group_id);
    if (leadsNowhere) for (const line of this.cookies.clearCookieLines()) response.appendHeader('Set-Cookie', line);
    return {};
  }
}
