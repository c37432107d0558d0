import { randomUUID } from 'node:crypto';
import { Injectable, Module } from '@nestjs/common';
import { ArrayUnique, IsArray, IsBoolean, IsIn, MaxLength } from 'class-validator';
import { Audit } from '../../audit/audit.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { IdentityCookies } from '../../identity/identity-cookies.js';
import { auditLinked } from '../../identity/new-browsers.js';
import { Remember, type RememberedBrowser } from '../../identity/remember.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Optional, OptionalText, Text } from '../../oauth/parameters.js';
import type { RedeemableCode } from '../../one-time-code/stored-codes.js';
import { OrganizationUserModule } from '../../organization-user/organization-user.module.js';
import { OrganizationUsers } from '../../organization-user/organization-users.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { CustomerRefreshTokens, REFRESH_TOKEN_GRANT } from '../../refresh-token/customer-refresh-tokens.js';
import { RefreshTokenModule } from '../../refresh-token/refresh-token.module.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { type Grant, GrantBody, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { TransferModule } from '../../transfer/transfer.module.js';
import { Transfers } from '../../transfer/transfers.js';

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
  @Text('The transfer token that the first device created.', EXAMPLE.transferToken)
  @MaxLength(1024)
  code!: string;

  @OptionalText(
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
  noChallenge: () => OAuthError.invalidRequest('remember: needs a code that was created with a code_challenge'),
  notForClient: (kind: RememberKind = 'browser') =>
    OAuthError.unauthorizedClient(`remember: ${kind} is not for this client`),
  grantNotListed: () => OAuthError.unauthorizedClient('remember: the client does not list the grant refresh_token'),
};

/** A failed attempt, such as one with a wrong `code_verifier`, leaves the transfer token usable (protocol §4.5). */
@Injectable()
@GrantType('identity_token', {
  body: IdentityTokenBody,
  settings: IdentityTokenSettings,
  responds: ['client_id'],
  refreshTokens: true,
  api: {
    description:
      'A second device redeems a transfer token and gets an access token for the same customer. A transfer token can be redeemed once.',
    examples: {
      'for one token lifetime': [],
      'with a code challenge': ['code_verifier'],
      'and stay in this browser': ['code_verifier', 'remember'],
    },
    errors: () => [
      OAuthError.invalidGrant('example'),
      ...Object.values(ERRORS).map((error) => error()),
      OAuthError.identityConflict(),
    ],
  },
})
export class IdentityTokenGrant implements Grant<IdentityTokenBody> {
  constructor(
    private readonly transfers: Transfers,
    private readonly remembering: Remember,
    private readonly audit: Audit,
    private readonly users: OrganizationUsers,
    private readonly cookies: IdentityCookies,
    private readonly refreshTokens: CustomerRefreshTokens,
  ) {}

  async grant(request: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    const { body, client } = request;
    const { remember, replace } = body;
    if (replace !== undefined && remember !== 'browser') throw ERRORS.replaceAlone();
    if (remember === undefined) return this.transfers.redeem(client, transferOf(body));
    assertMayRemember(client, remember);
    return remember === 'browser' ? this.rememberBrowser(request) : this.rememberByRefreshToken(request);
  }

  /** The token's `jti` begins with the id of the redemption, so that ending the token alone does not end the link. */
  private async rememberBrowser({ body, client, browser }: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    if (browser.origin === undefined) throw ERRORS.noOrigin();
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    let added: RememberedBrowser | undefined;
    const granted = await this.transfers.redeem(client, transferOf(body), {
      prepare: async (code) => {
        assertHasChallenge(code);
        const hasUser = await this.users.hasUser(code.subject);
        added = await this.remembering.prepare({ ...code, hasUser }, candidates, body.replace ?? false);
      },
      store: (manager, { attempt }) => this.remembering.store(manager, added as RememberedBrowser, attempt),
    });
    const { browserId, cookie: secret } = (added as unknown as RememberedBrowser).browser;
    const { entityId, attempt } = granted;
    for (const line of this.cookies.setCookieLines({ entityId, secret })) browser.setCookie(line);
    auditLinked(this.audit, browserId, granted, { redemption: attempt });
    return { ...granted, attempt: `${attempt}.${randomUUID()}` };
  }

  /** The id of the redemption is also that of the refresh family. */
  private async rememberByRefreshToken({ body, client }: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    let refreshToken = '';
    const granted = await this.transfers.redeem(client, transferOf(body), {
      prepare: async (code) => assertHasChallenge(code),
      store: async (manager, code) => {
        refreshToken = await this.refreshTokens.beginIn(manager, code);
      },
    });
    this.refreshTokens.auditIssued({ ...granted, subject: granted.entityId, clientId: client.clientId });
    return { ...granted, attempt: `${granted.attempt}.${randomUUID()}`, refreshToken };
  }
}

function transferOf({ code, code_verifier: codeVerifier }: IdentityTokenBody) {
  return { code, codeVerifier };
}

function assertMayRemember(client: ClientApplication, kind: RememberKind): void {
  const settings = client.grants.identity_token as IdentityTokenSettings | undefined;
  if (!settings?.remember?.includes(kind)) throw ERRORS.notForClient(kind);
  if (kind === 'refresh_token' && !client.mayUse(REFRESH_TOKEN_GRANT, true)) throw ERRORS.grantNotListed();
}

/** Without a challenge, a thief of the transfer token could stay on its own device. */
function assertHasChallenge({ hasChallenge }: RedeemableCode): void {
  if (!hasChallenge) throw ERRORS.noChallenge();
}

@Module({
  imports: [TransferModule, IdentityModule, OrganizationUserModule, RefreshTokenModule],
  providers: [IdentityTokenGrant],
})
export class IdentityTokenGrantModule {}
