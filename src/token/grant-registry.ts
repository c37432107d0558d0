import { Injectable, type OnModuleInit } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { AgentPrincipal } from '../http/callers/principal.js';
import { JwtIssuer } from '../oauth/jwt-issuer.js';
import { OAuthError } from '../oauth/oauth-error.js';
import { requiredString } from '../oauth/parameters.js';
import { SNAKE_CASE_NAME } from '../platform/validation/text-rules.js';
import { GrantSettingsClasses } from '../registry/grant-settings-classes.js';
import { assertAttemptsUsable } from './attempt-limits.js';
import { assertClaimsUsable } from './declared-claims.js';
import { type Grant, type GrantBody, GrantDecorator, type GrantMetadata } from './grant.js';

export interface RegisteredGrant extends GrantMetadata {
  handler: Grant<GrantBody, AgentPrincipal | undefined>;
}

const URI = /^[a-z][a-z0-9+.-]*:\S+$/;
/** Fields of RFC 6749, RFC 7519 or every token response. The endpoint fills in `client_id`, which may be declared. */
const RESERVED = new Set(
  'access_token entity_id expires_in token_type scope refresh_token id_token iss sub aud exp nbf iat jti'.split(' '),
);

/** A token whose proof ends with its caller lasts at most so long (protocol §10.7). */
const MAX_LIFETIME_WITH_CALLER_SECONDS = 86_400;

const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) > 0;

@Injectable()
export class GrantRegistry implements OnModuleInit {
  private readonly grants = new Map<string, RegisteredGrant>();

  constructor(
    private readonly discovery: DiscoveryService,
    private readonly settingsClasses: GrantSettingsClasses,
  ) {}

  /** @throws Error if a grant is declared wrongly, so that the application does not start */
  onModuleInit(): void {
    for (const wrapper of this.discovery.getProviders({ metadataKey: GrantDecorator.KEY })) {
      const declared = this.discovery.getMetadataByDecorator(GrantDecorator, wrapper) as GrantMetadata;
      this.assertUsable(declared, wrapper.name);
      assertRulesUsable(declared, wrapper.name);
      assertAttemptsUsable(declared, wrapper.name);
      assertClaimsUsable(declared, wrapper.name, this.all());
      if (!wrapper.isDependencyTreeStatic()) {
        throw new Error(
          `${wrapper.name}: a grant must be a singleton; remove the injection scope REQUEST or TRANSIENT from it and from its dependencies`,
        );
      }
      this.grants.set(declared.name, { ...declared, handler: wrapper.instance });
      const { name, settings, clientSettings = settings, optIn } = declared;
      // the registry rejects two organizations that accept the same proofs
      const hasIssuer = settings === JwtIssuer || settings?.prototype instanceof JwtIssuer;
      this.settingsClasses.add(name, { organization: settings, client: clientSettings }, { optIn, hasIssuer });
    }
  }

  /** @throws OAuthError `invalid_request`, `unsupported_grant_type` */
  named(grantType: unknown): RegisteredGrant {
    const grant = this.grants.get(requiredString('grant_type', grantType));
    if (!grant) throw OAuthError.unsupportedGrantType();
    return grant;
  }

  all(): RegisteredGrant[] {
    return [...this.grants.values()];
  }

  /** Whether a grant declares `form`, so that its parameters may also be sent as a form. */
  readsForms(grantType: string | null): boolean {
    return this.grants.get(grantType ?? '')?.form ?? false;
  }

  private assertUsable({ name, responds = [], mayRespond = [] }: GrantMetadata, className: string): void {
    if (!SNAKE_CASE_NAME.test(name) && !URI.test(name))
      throw new Error(`${className}: the grant type "${name}" must be a name in snake_case, or a URI; rename it`);
    const other = this.grants.get(name)?.handler.constructor.name;
    if (other) {
      const both = [other, className].sort().join(' and ');
      throw new Error(`${both}: two grants have the name "${name}"; rename one, or provide it only once`);
    }
    const reserved = [...responds, ...mayRespond].find(
      (field) => RESERVED.has(field) || /^(error|oauth_exception|exception)/.test(field),
    );
    if (reserved)
      throw new Error(`${className}: may not respond with "${reserved}", which has a meaning of its own; rename it`);
  }
}

/** @throws Error if the rules that a grant declares about its proofs are not usable */
function assertRulesUsable({ uses, lifetime, guesses, endsWith }: GrantMetadata, className: string): void {
  const fail = (reason: string) => new Error(`${className}: ${reason}`);
  if (uses !== undefined && uses !== 'unlimited' && !isCount(uses))
    throw fail("uses must be a number from 1, or 'unlimited'");
  if (lifetime !== undefined && !isCount(lifetime)) throw fail('lifetime must be a number of seconds');
  if (guesses !== undefined && !isCount(guesses)) throw fail('guesses must be a number from 1');
  if (endsWith === 'caller' && lifetime !== undefined && lifetime > MAX_LIFETIME_WITH_CALLER_SECONDS)
    throw fail(`lifetime must be at most ${MAX_LIFETIME_WITH_CALLER_SECONDS} with endsWith 'caller'`);
}
