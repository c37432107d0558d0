import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { RedemptionModule } from '../redemption/redemption.module.js';
import { SessionModule } from '../session/session.module.js';
import { AgentTokenController } from './agent-token.controller.js';
import { AgentTokenIssuer } from './agent-token-issuer.js';
import { ClientCredentials } from './client-credentials.js';
import { Authorizer } from './page/authorizer.js';
import { Consent } from './page/consent.entity.js';
import { Consents } from './page/consents.js';
import { PageController } from './page/page.controller.js';
import { PageResponses } from './page/page-responses.js';
import { SignIn } from './page/sign-in.js';
import { KnownBrowsers } from './session/known-browsers.js';
import { PageCookies } from './session/page-cookies.js';
import { PageSessions } from './session/page-sessions.js';
import { SignInFailure } from './session/sign-in-failure.entity.js';
import { SignInFailures } from './session/sign-in-failures.js';

const SESSION = [PageCookies, PageSessions, KnownBrowsers, SignInFailures, SignIn];
const PAGE = [Authorizer, Consents, PageResponses];

/** Agents: the authorization page where they grant access, and their tokens. */
@Module({
  imports: [TypeOrmModule.forFeature([Consent, SignInFailure]), AccessTokenModule, RedemptionModule, SessionModule],
  controllers: [PageController, AgentTokenController],
  providers: [AgentTokenIssuer, ClientCredentials, ...SESSION, ...PAGE],
  exports: [AgentTokenIssuer, Consents],
})
export class AgentAuthModule {}
