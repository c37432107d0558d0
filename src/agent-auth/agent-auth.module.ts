import { Module } from '@nestjs/common';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OneTimeCodeModule } from '../one-time-code/one-time-code.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { AgentTokens } from './agent-tokens.js';
import { BearerGuard } from './bearer/bearer.guard.js';
import { BearerStrategy } from './bearer/bearer.strategy.js';
import { TrustedIssuerTokens } from './bearer/trusted-issuer-tokens.js';
import { AuthorizeController } from './page/authorize.controller.js';
import { Authorizer } from './page/authorizer.js';
import { Consent } from './page/consent.entity.js';
import { Consents } from './page/consents.js';
import { PageResponses } from './page/page-responses.js';
import { SessionController } from './page/session.controller.js';
import { SignIn } from './page/sign-in.js';
import { AgentSessions } from './session/agent-sessions.js';
import { CsrfTokens } from './session/csrf-tokens.js';
import { PasswordChecks } from './session/password-checks.js';
import { SessionSecrets } from './session/session-secrets.js';
import { SignInAttempts } from './session/sign-in-attempts.js';
import { SignedCookies } from './session/signed-cookies.js';
import { AgentTokenController } from './token/agent-token.controller.js';
import { AgentTokenEndpoint } from './token/agent-token.endpoint.js';

const BEARER = [BearerStrategy, BearerGuard, TrustedIssuerTokens];
const SESSION = [SessionSecrets, SignedCookies, AgentSessions, CsrfTokens, SignInAttempts, PasswordChecks, SignIn];
const PAGE = [Authorizer, Consents, PageResponses];

/** Agents: who calls with a bearer, the authorization page where agents grant access, and their tokens. */
@Module({
  imports: [TypeOrmModule.forFeature([Consent]), PassportModule, RegistryModule, AccessTokenModule, OneTimeCodeModule],
  controllers: [AuthorizeController, SessionController, AgentTokenController],
  providers: [AgentTokens, AgentTokenEndpoint, ...BEARER, ...SESSION, ...PAGE],
  exports: [AgentTokens, BearerGuard, BearerStrategy],
})
export class AgentAuthModule {}
