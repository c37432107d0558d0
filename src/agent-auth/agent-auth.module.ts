import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { BearerModule } from '../bearer/bearer.module.js';
import { OneTimeCodeModule } from '../one-time-code/one-time-code.module.js';
import { RefreshTokenModule } from '../refresh-token/refresh-token.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { AgentTokenIssuer } from './agent-token-issuer.js';
import { AuthorizeController } from './page/authorize.controller.js';
import { Authorizer } from './page/authorizer.js';
import { Consent, Consents } from './page/consents.js';
import { PageResponses } from './page/page-responses.js';
import { SessionController } from './page/session.controller.js';
import { SignIn } from './page/sign-in.js';
import { AgentSessions } from './session/agent-sessions.js';
import { CsrfTokens } from './session/csrf-tokens.js';
import { PasswordChecks } from './session/password-checks.js';
import { SignInAttempts } from './session/sign-in-attempts.js';
import { SessionSecrets, SignedCookies } from './session/signed-cookies.js';
import { TokenPairController } from './token-pair/token-pair.controller.js';
import { TokenPairEndpoint } from './token-pair/token-pair.endpoint.js';

const SESSION = [SessionSecrets, SignedCookies, AgentSessions, CsrfTokens, SignInAttempts, PasswordChecks, SignIn];
const PAGE = [Authorizer, Consents, PageResponses];

/** Agents: the authorization page where they grant access, and their tokens. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Consent]),
    BearerModule,
    RegistryModule,
    AccessTokenModule,
    OneTimeCodeModule,
    RefreshTokenModule,
  ],
  controllers: [AuthorizeController, SessionController, TokenPairController],
  providers: [AgentTokenIssuer, TokenPairEndpoint, ...SESSION, ...PAGE],
  exports: [AgentTokenIssuer],
})
export class AgentAuthModule {}
