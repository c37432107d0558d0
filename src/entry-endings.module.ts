import { Global, Module } from '@nestjs/common';
import { AgentAuthModule } from './agent-auth/agent-auth.module.js';
import { Consents } from './agent-auth/page/consents.js';
import { ENTRY_ENDINGS, type EntryEnding } from './registry/registry-transactions.js';
import { agentResource } from './registry/resources/agent.resource.js';
import { clientResource } from './registry/resources/client.resource.js';
import { organizationResource } from './registry/resources/organization.resource.js';
import { AgentSessions } from './session/agent/agent-sessions.js';
import { Endings } from './session/endings.js';
import { SessionModule } from './session/session.module.js';

/** Lists what ends with the tokens of an entry. Global, because the registry may not depend on these modules. */
@Global()
@Module({
  imports: [AgentAuthModule, SessionModule],
  providers: [
    {
      provide: ENTRY_ENDINGS,
      inject: [AgentSessions, Consents, Endings],
      useFactory: (sessions: AgentSessions, consents: Consents, endings: Endings): EntryEnding[] => [
        { resource: agentResource, end: (ids, manager) => sessions.endAllOf(ids, manager) },
        { resource: agentResource, end: (ids, manager) => consents.endOfAgents(ids, manager) },
        { resource: clientResource, end: (ids, manager) => endings.endClients(ids, manager) },
        { resource: clientResource, end: (ids, manager) => consents.endOfClients(ids, manager) },
        { resource: clientResource, endIssued: (ids, manager) => endings.endIssued('client', ids, manager) },
        {
          resource: organizationResource,
          endIssued: (ids, manager) => endings.endIssued('organization', ids, manager),
        },
      ],
    },
  ],
  exports: [ENTRY_ENDINGS],
})
export class EntryEndingsModule {}
