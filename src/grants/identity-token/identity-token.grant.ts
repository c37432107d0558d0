import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { MigrationState } from '../../access-token/migration-state.js';
import { IdentityCookies } from '../../identity/identity-cookies.js';
import { LinkedBrowsers } from '../../identity/linked-browsers.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import type { RedeemableCode } from '../../one-time-code/redemption.js';
import type { ClientApplication } from '../../registry/client-application.entity.js';
import { type Browser, type Grant, type GrantRequest, type GrantResult, GrantType } from '../../token/grant.js';
import { Transfers } from '../../transfer/transfers.js';
import { IdentityTokenBody } from './identity-token.body.js';
import { IdentityTokenSettings, type RememberKind } from './identity-token.settings.js';

/**
 * Exchanges a transfer token for an access token of its customer (protocol §4.5). A transfer token can be redeemed
 * once. A failed attempt, such as one with a wrong `code_verifier`, leaves it usable.
 */
@Injectable()
@GrantType('identity_token', { body: IdentityTokenBody, settings: IdentityTokenSettings, responds: ['client_id'] })
export class IdentityTokenGrant implements Grant<IdentityTokenBody> {
  constructor(
    private readonly transfers: Transfers,
    private readonly browsers: LinkedBrowsers,
    private readonly cookies: IdentityCookies,
    private readonly migration: MigrationState,
  ) {}

  async grant({ body, client, browser }: GrantRequest<IdentityTokenBody>): Promise<GrantResult> {
    const proof = { clientId: client.clientId, codeVerifier: body.code_verifier };
    const { remember, replace } = body;
    if (replace !== undefined && remember !== 'browser')
      throw OAuthError.invalidRequest('replace: only with remember=browser');
    if (remember === undefined) return this.transfers.redeem(body.code, proof);
    assertMayRemember(client, remember);
    await this.migration.assertComplete();
    return this.rememberBrowser(body, proof.clientId, browser);
  }

  /** The token's `jti` begins with the id of the redemption, so that ending the token alone does not end the link. */
  private async rememberBrowser(body: IdentityTokenBody, clientId: string, browser: Browser): Promise<GrantResult> {
    if (browser.origin === undefined) throw OAuthError.invalidRequest('remember: needs an Origin');
    const candidates = this.cookies.read(browser.cookies, browser.origin);
    const link = this.browsers.newLink(candidates, body.replace ?? false);
    const granted = await this.transfers.redeem(
      body.code,
      { clientId, codeVerifier: body.code_verifier },
      {
        prepare: (code) => {
          assertHasChallenge(code);
          return link.prepare(code);
        },
        store: (attempt) => link.store(attempt),
        discard: () => link.discard(),
      },
    );
    const { entityId, attempt } = granted;
    for (const line of this.cookies.setCookieLines({ entityId, secret: link.secret })) browser.setCookie(line);
    link.audit();
    return { ...granted, attempt: `${attempt}.${randomUUID()}` };
  }
}

function assertMayRemember({ grants }: ClientApplication, kind: RememberKind): void {
  const settings = grants.identity_token as IdentityTokenSettings | undefined;
  if (!settings?.remember?.includes(kind))
    throw OAuthError.unauthorizedClient(`remember: ${kind} is not for this client`);
}

/** Without a challenge, a thief of the transfer token could stay on its own device. */
function assertHasChallenge({ hasChallenge }: RedeemableCode): void {
  if (!hasChallenge) throw OAuthError.invalidRequest('remember: needs a code that was created with a code_challenge');
}
