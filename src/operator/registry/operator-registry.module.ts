import { Module } from '@nestjs/common';
import { AgentAuthModule } from '../../agent-auth/agent-auth.module.js';
import { CustomerModule } from '../../customer/customer.module.js';
import { FeedModule } from '../../feed/feed.module.js';
import { CallersModule } from '../../http/callers/callers.module.js';
import { IdentityModule } from '../../identity/identity.module.js';
import { RegistryModule } from '../../registry/registry.module.js';
import { SessionModule } from '../../session/session.module.js';
import { GrantStoresModule } from '../../token/stores/grant-stores.module.js';
import { AgentController } from './controllers/agent.controller.js';
import { ClientController } from './controllers/client.controller.js';
import { OrganizationController } from './controllers/organization.controller.js';
import { ResourceServerController } from './controllers/resource-server.controller.js';
import { EntryChecks } from './entry-checks.js';
import { RegistryFile } from './file/registry-file.js';
import { Offboarding } from './offboarding/offboarding.js';
import { OffboardingRequests } from './offboarding/offboarding-requests.js';
import { OrganizationErasure } from './offboarding/organization-erasure.js';
import { RegistryEditor } from './registry-editor.js';
import { RegistryLists } from './registry-lists.js';
import { RegistryTransactions } from './registry-transactions.js';

@Module({
  // an off-boarding erases the codes of the grant stores too
  imports: [
    RegistryModule,
    CallersModule,
    AgentAuthModule,
    FeedModule,
    SessionModule,
    CustomerModule,
    IdentityModule,
    GrantStoresModule,
  ],
  controllers: [OrganizationController, ClientController, ResourceServerController, AgentController],
  providers: [
    EntryChecks,
    Offboarding,
    OffboardingRequests,
    OrganizationErasure,
    RegistryEditor,
    RegistryFile,
    RegistryLists,
    RegistryTransactions,
  ],
})
export class OperatorRegistryModule {}
