import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { CustomerModule } from '../customer/customer.module.js';
import { FeedModule } from '../feed/feed.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { AgentSession } from './agent/agent-session.entity.js';
import { AgentSessionEndings } from './agent/agent-session-endings.js';
import { AgentSessions } from './agent/agent-sessions.js';
import { Browser } from './browser.entity.js';
import { BrowserRecognition } from './browser-recognition.js';
import { Browsers } from './browsers.js';
import { Session } from './session.entity.js';
import { SessionBounds } from './session-bounds.js';
import { SessionEndings } from './session-endings.js';
import { SessionLifetime } from './session-lifetime.js';
import { SessionPurge } from './session-purge.js';
import { Sessions } from './sessions.js';
import { TokenInspection, TokenValidity } from './token-validity.js';

const PROVIDERS = [
  AgentSessionEndings,
  AgentSessions,
  BrowserRecognition,
  Browsers,
  SessionBounds,
  SessionEndings,
  SessionLifetime,
  SessionPurge,
  Sessions,
  TokenInspection,
  TokenValidity,
];

/**
 * The sessions of customers and agents: everything that a device holds is one row. `sessions.ts` begins those of
 * customers, and `session-endings.ts` ends them; `agent/` does both for those of agents. `token-validity.ts` decides
 * whether a token has ended, and `browser-recognition.ts` recognizes browsers.
 */
@Module({
  imports: [
    TypeOrmModule.forFeature([AgentSession, Browser, Session]),
    AccessTokenModule,
    CustomerModule,
    FeedModule,
    RegistryModule,
  ],
  providers: PROVIDERS,
  exports: PROVIDERS,
})
export class SessionModule {}
