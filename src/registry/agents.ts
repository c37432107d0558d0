import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database.js';
import type { EntityRow } from '../platform/database/entity-row.js';
import { selectStatement } from '../platform/database/statement.js';
import type { Agent } from './agent.entity.js';
import { agentResource } from './resources/agent.resource.js';
import { type TokenRevoker, TokenRevokers } from './token-revokers.js';

const COLUMNS = [
  'id',
  'email',
  'name',
  'password_hash',
  'organization_id',
  'scopes',
  'owned_by_file',
  'generation',
] as const;

const findBy = (column: 'id' | 'email') =>
  selectStatement<[key: string], EntityRow<Agent, (typeof COLUMNS)[number]>>({
    columns: COLUMNS,
    from: `agent WHERE ${column} = ?`,
    batch: true,
  });

const FIND_BY_ID = findBy('id');
const FIND_BY_EMAIL = findBy('email');

/** The agents of all organizations. Each use reads the database, so that a new password is valid at once. */
@Injectable()
export class Agents {
  constructor(
    private readonly database: Database,
    private readonly tokenRevokers: TokenRevokers,
  ) {}

  /** The agent who signs in with an email. Upper and lower case are the same. */
  byEmail(email: string): Promise<Agent | undefined> {
    return this.find(FIND_BY_EMAIL, email.toLowerCase());
  }

  byId(id: string): Promise<Agent | undefined> {
    return this.find(FIND_BY_ID, id);
  }

  /** @param revoke called with agents that are deleted, or whose password, organization or scopes change */
  onRevocation(revoke: TokenRevoker): void {
    this.tokenRevokers.register(agentResource, revoke);
  }

  private async find(statement: typeof FIND_BY_ID, key: string): Promise<Agent | undefined> {
    const [row] = await this.database.select(statement, [key]);
    if (!row) return undefined;
    const { id, email, name, scopes, generation } = row;
    return {
      id,
      email,
      name,
      passwordHash: row.password_hash,
      organizationId: row.organization_id,
      scopes: JSON.parse(scopes),
      ownedByFile: Boolean(row.owned_by_file),
      generation,
    };
  }
}
