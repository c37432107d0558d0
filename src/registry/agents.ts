import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import { Agent } from './agent.entity.js';
import { EntityReader } from './entity-reader.js';
import { RegistryTransactions, type TokenRevoker } from './registry-transactions.js';
import { agentResource } from './resources/agent.resource.js';

/** The agents of all organizations. Each use reads the database, so that a new password is valid at once. */
@Injectable()
export class Agents {
  private readonly byKey = { id: new EntityReader(Agent, 'id'), email: new EntityReader(Agent, 'email') };

  constructor(
    private readonly database: Database,
    private readonly transactions: RegistryTransactions,
  ) {}

  /** The agent who signs in with an email. Upper and lower case are the same. */
  byEmail(email: string): Promise<Agent | undefined> {
    return this.byKey.email.find(this.database, email.toLowerCase());
  }

  byId(id: string): Promise<Agent | undefined> {
    return this.byKey.id.find(this.database, id);
  }

  /** @param revoke called with agents that are deleted, or whose password, organization or scopes change */
  onRevocation(revoke: TokenRevoker): void {
    this.transactions.registerRevoker(agentResource, revoke);
  }
}
