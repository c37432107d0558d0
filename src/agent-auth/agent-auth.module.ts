import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { OneTimeCodeModule } from '../one-time-code/one-time-code.module.js';
import { RefreshTokenModule } from '../refresh-token/refresh-token.module.js';
import { SessionModule } from '../session/session.module.js';
import { AgentTokenIssuer } from './agent-token-issuer.js';
import { Authorizer } from './page/authorizer.js';
import { Consent, Consents } from './page/consents.js';
import { PageController } from './page/page.controller.js';
import { PageResponses } from './page/page-responses.js';
import { SignIn } from './page/sign-in.js';
import { AgentSessions } from './session/agent-sessions.js';
import { CsrfTokens } from './session/csrf-tokens.js';
import { SignInAttempts } from './session/sign-in-attempts.js';
import { SignedCookies } from './session/signed-cookies.js';
import { TokenPairController } from './token-pair.controller.js';

const SESSION = [SignedCookies, AgentSessions, CsrfTokens, SignInAttempts, SignIn];
const PAGE = [Authorizer, Consents, PageResponses];

/** Agents: the authorization page where they grant access, and their tokens. */
@Module({
  imports: [
    TypeOrmModule.forFeature([Consent]),
    AccessTokenModule,
    OneTimeCodeModule,
    RefreshTokenModule,
    SessionModule,
  ],
  controllers: [PageController, TokenPairController],
  providers: [AgentTokenIssuer, ...SESSION, ...PAGE],
  exports: [AgentTokenIssuer],
})
export class AgentAuthModule {}
