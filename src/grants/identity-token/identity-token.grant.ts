import { Injectable, Module } from '@nestjs/common';
import { ArrayUnique, IsArray, IsBoolean, IsIn, MaxLength } from 'class-validator';
import { IdentityModule } from '../../identity/identity.module.js';
import { IdentityCookies } from '../../identity/identity-cookies.js';
import { RememberService } from '../../identity/remember.service.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { traced } from '../../platform/request-context/request-context.js';
import { ApiOptionalString, ApiString, Optional } from '../../platform/validation/validation.js';
import { CustomerRefreshTokens, REFRESH_TOKEN_GRANT } from '../../redemption/customer-refresh-tokens.js';
import { RedemptionModule } from '../../redemption/redemption.module.js';
import { type RedeemableCode, TransferCodes } from '../../redemption/transfer-codes.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { Registry } from '../../registry/registry.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';

/** The ways in which a customer can stay on the second device (protocol §4.5). */
const REMEMBER_KINDS = ['browser', 'refresh_token'] as const;

type RememberKind = (typeof REMEMBER_KINDS)[number];

/** The registry's settings for the identity token grant, under the client's `grants`. */
class IdentityTokenSettings {
  /** The values of `remember` that the client may send; if omitted, none. */
  @Optional()
  @IsArray()
  @ArrayUnique()
  @IsIn(REMEMBER_KINDS, { each: true, message: `each must be one of ${REMEMBER_KINDS.join(', ')}` })
  remember?: RememberKind[];
}

/** The parameters of protocol §4.5. */
export class IdentityTokenBody extends GrantBody {
  @ApiString('The transfer token that the first device created.', EXAMPLE.transferToken)
  @MaxLength(1024)
  code!: string;

  @ApiOptionalString(
    'Required if the transfer token was created with a `code_challenge`, and rejected otherwise (RFC 7636).',
    EXAMPLE.codeVerifier,
  )
  code_verifier?: string;

  @Optional()
  @IsIn(REMEMBER_KINDS, { message: `must be one of ${REMEMBER_KINDS.join(', ')}` })
  @ApiProperty(
    'How the customer stays on this device. `browser` sets cookies for the grant `cookie`. `refresh_token` adds a refresh token to the response. Both need a `code_challenge` and a client that may use them.',
    'browser',
  )
  remember?: RememberKind;

  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  @ApiProperty(
    'Only with `remember=browser`: `true` replaces another customer that the browser has in this organization and group. Ask the user first.',
    true,
  )
  replace?: boolean;
}

const ERRORS = {
  replaceAlone: () => OAuthError.invalidRequest('replace: only with remember=browser'),
  noOrigin: () => OAuthError.invalidRequest('remember: needs an Origin'),
  /** Without a challenge, a thief of the transfer token could stay on its own device. */
  noChallenge: () => OAuthError.invalidRequest('remember: needs a code that was created with a code_challenge'),
  notForClient: (kind: RememberKind = 'browser') =>
    OAuthError.unauthorizedClient(`remember: ${kind} is not for this client`),
  grantNotListed: () => OAuthError.unauthorizedClient('remember: the client does not list the grant refresh_token'),
};

/** A failed attempt, such as one with a wrong `code_verifier`, leaves the transfer token usable (protocol §4.5). */
@Injectable()
@GrantType('identity_token', {
  body: IdentityTokenBody,
  readsCustomer: true,
  settings: IdentityTokenSettings,
  responds: ['client_id'],
  refreshTokens: true,
  invalidGrantHint:
    'code: unknown, expired, used, ended or of another client; or code_verifier: missing or does not fit the code_challenge',
  api: {
    description:
      'A second device redeems a transfer token and gets an access token for the same customer. A transfer token can be redeemed once.',
    errors: ['400 invalid_grant', '409 identity_conflict'],
  },
})
export class IdentityTokenGrant implements Grant<IdentityTokenBody> {
  constructor(
    private readonly registry: Registry,
    private readonly configuration: Configuration,
    private readonly codes: TransferCodes,
    private readonly rememberService: RememberService,
    private readonly refreshTokens: CustomerRefreshTokens,
    private readonly cookies: IdentityCookies,
  ) {}

  grant(request: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    return traced('redemption', { 'cas.code_kind': 'transfer' }, () => this.redeem(request));
  }

  private async redeem(request: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    const { body, client, browser } = request;
    const { remember, replace, code_verifier } = body;
    if (replace !== undefined && remember !== 'browser') throw ERRORS.replaceAlone();
    if (remember !== undefined) assertMayRemember(client, remember);
    if (remember === 'browser' && browser.origin === undefined) throw ERRORS.noOrigin();
    const proof = { clientId: client.clientId, codeVerifier: code_verifier };
    const code = await this.codes.findRedeemable(body.code, proof);
    this.registry.requireOrganization(client, code.organizationId);
    if (remember !== undefined && !code.hasChallenge) throw ERRORS.noChallenge();
    const { entityId, organizationId, groupId, hasUser, session } = code;
    const granted = { entityId, organizationId, groupId, hasUser, session };
    if (remember === 'refresh_token') return { ...granted, refreshToken: await this.refreshTokens.begin(code) };
    if (remember === 'browser') await this.rememberIn(request, code);
    else await this.codes.redeem(code, this.configuration.CUSTOMER_TOKEN_TTL);
    return granted;
  }

  private async rememberIn({ body, browser }: GrantRequest<IdentityTokenBody>, code: RedeemableCode) {
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    const options = { candidates, replace: body.replace ?? false, ttlSeconds: this.configuration.CUSTOMER_TOKEN_TTL };
    const secret = await this.rememberService.remember(code, options);
    for (const line of this.cookies.setCookieLines({ entityId: code.entityId, secret })) browser.setCookie(line);
  }
}

function assertMayRemember(client: ClientApplication, kind: RememberKind): void {
  const settings = client.grants.identity_token as IdentityTokenSettings | undefined;
  if (!settings?.remember?.includes(kind)) throw ERRORS.notForClient(kind);
  if (kind === 'refresh_token' && !client.mayUse(REFRESH_TOKEN_GRANT, true)) throw ERRORS.grantNotListed();
}

@Module({ imports: [IdentityModule, RedemptionModule], providers: [IdentityTokenGrant] })
export class IdentityTokenGrantModule {}
