import { Global, Injectable, Module } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { AgentAuthModule } from './agent-auth/agent-auth.module.js';
import { Consents } from './agent-auth/page/consents.js';
import { type EndedEntries, EntryEndings, type IssuedUpTo } from './registry/registry-transactions.js';
import { AgentSessions } from './session/agent/agent-sessions.js';
import { RecordedEndings } from './session/recorded-endings.js';
import { SessionModule } from './session/session.module.js';

@Injectable()
class EntryEndingsOfService implements EntryEndings {
  constructor(
    private readonly sessions: AgentSessions,
    private readonly consents: Consents,
    private readonly endings: RecordedEndings,
  ) {}

  async endIn(manager: EntityManager, { agentIds, clientIds }: EndedEntries): Promise<void> {
    await this.sessions.endAllOf(agentIds, manager);
    await this.consents.end('agentId', agentIds, manager);
    await this.endings.endClients(clientIds, manager);
    await this.consents.end('clientId', clientIds, manager);
  }

  endIssuedIn(manager: EntityManager, kind: 'organization' | 'client', issued: IssuedUpTo[]): Promise<void> {
    return this.endings.endIssued(kind, issued, manager);
  }

  /** No session of an agent is left, because one begins only for the generation that the agent has. */
  async endAgain({ agentIds, clientIds }: EndedEntries): Promise<void> {
    await this.consents.end('agentId', agentIds);
    await this.endings.endClients(clientIds);
    await this.consents.end('clientId', clientIds);
  }
}

/** Global, because the registry may not depend on these modules. */
@Global()
@Module({
  imports: [AgentAuthModule, SessionModule],
  providers: [{ provide: EntryEndings, useClass: EntryEndingsOfService }],
  exports: [EntryEndings],
})
export class EntryEndingsModule {}
