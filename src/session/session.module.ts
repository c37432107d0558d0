import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AccessTokenModule } from '../access-token/access-token.module.js';
import { CustomerModule } from '../customer/customer.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { AgentRefreshTokens } from './agent/agent-refresh-tokens.js';
import { AgentSession } from './agent/agent-session.entity.js';
import { AgentSessionEndings } from './agent/agent-session-endings.js';
import { AgentSessions } from './agent/agent-sessions.js';
import { AuthorizationCodes } from './agent/authorization-codes.js';
import { Browser } from './browser.entity.js';
import { BrowserRecognition } from './browser-recognition.js';
import { Browsers } from './browsers.js';
import { CallerNetworks } from './caller-networks.js';
import { CustomerRefreshTokens } from './customer-refresh-tokens.js';
import { Ended } from './ended.entity.js';
import { CustomerEvent } from './feed/customer-event.entity.js';
import { CustomerEvents } from './feed/customer-events.js';
import { EventPages } from './feed/event-pages.js';
import { FeedEntries } from './feed/feed-entries.js';
import { FeedPublisher } from './feed/feed-publisher.js';
import { FeedStore } from './feed/feed-store.js';
import { RevocationFeedState } from './feed/revocation-feed-state.entity.js';
import { RevocationLimit } from './feed/revocation-limit.js';
import { RevocationPages } from './feed/revocation-pages.js';
import { ProofUse } from './proof-use.entity.js';
import { ProofUses } from './proof-uses.js';
import { Proofs } from './proofs.js';
import { RecordedEndings } from './recorded-endings.js';
import { Session } from './session.entity.js';
import { SessionBounds } from './session-bounds.js';
import { SessionEndings } from './session-endings.js';
import { SessionLifetime } from './session-lifetime.js';
import { SessionPurge } from './session-purge.js';
import { Sessions } from './sessions.js';
import { TokenInspection, TokenValidity } from './token-validity.js';
import { TransferCodes } from './transfer-codes.js';

const ENTITIES = [AgentSession, Browser, CustomerEvent, Ended, ProofUse, RevocationFeedState, Session];

const EXPORTED = [
  AgentRefreshTokens,
  AgentSessionEndings,
  AgentSessions,
  AuthorizationCodes,
  BrowserRecognition,
  Browsers,
  CustomerEvents,
  CustomerRefreshTokens,
  EventPages,
  ProofUses,
  Proofs,
  RecordedEndings,
  RevocationLimit,
  RevocationPages,
  FeedPublisher,
  SessionBounds,
  SessionEndings,
  SessionLifetime,
  SessionPurge,
  Sessions,
  TokenInspection,
  TokenValidity,
  TransferCodes,
];

/**
 * The sessions of customers and agents: everything that a device holds is one row. `sessions.ts` begins those of
 * customers, and `session-endings.ts` ends them; `agent/` does both for those of agents. `token-validity.ts` decides
 * whether a token has ended, and `browser-recognition.ts` recognizes browsers.
 */
@Module({
  imports: [TypeOrmModule.forFeature(ENTITIES), AccessTokenModule, CustomerModule, RegistryModule],
  providers: [...EXPORTED, CallerNetworks, FeedEntries, FeedStore],
  exports: EXPORTED,
})
export class SessionModule {}
