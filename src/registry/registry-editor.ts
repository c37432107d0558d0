import { Injectable } from '@nestjs/common';
import { type EntityManager, MoreThan, type ObjectLiteral } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { isDuplicate } from '../platform/database/database-errors.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { Agent } from './agent.entity.js';
import { Agents, NEXT_GENERATION } from './agents.js';
import { ClientApplication } from './client-application.entity.js';
import { ENTRY_KINDS, type Entry, type EntryList } from './entry-kinds.js';
import { contradictionsOf } from './file/check-registry.js';
import { mergePatched } from './file/merge-patch.js';
import { RegistryDocument } from './file/registry-document.js';
import { withDefaults } from './file/registry-rows.js';
import { GrantCatalogue } from './grant-catalogue.js';
import { Organization } from './organization.entity.js';
import { withNewSecret } from './previous-secrets.js';
import { Registry } from './registry.js';
import { RegistryRevision } from './registry-revision.entity.js';
import { ResourceServer } from './resource-server.entity.js';
import { entryOf, passwordHashOf, takenAway } from './sent-entry.js';
import { lowered, owned, refuseNamed, refuseSecondAgent, shown } from './stored-entry.js';

/** What a change of an agent's entry ends its tokens for. */
const ENDING = ['password', 'organization_id', 'scopes'];

/**
 * Changes single entries of the registry by the rules of its file. Each change is one transaction that begins by counting
 * the revision, whose row lets one writer in at a time, on all processes.
 */
@Injectable()
export class RegistryEditor {
  constructor(
    private readonly database: Database,
    private readonly registry: Registry,
    private readonly agents: Agents,
    private readonly catalogue: GrantCatalogue,
    private readonly clock: Clock,
  ) {}

  /** The next entries after a key, in the order of their keys. */
  async list(list: EntryList, after: string, limit: number): Promise<Entry[]> {
    const kind = ENTRY_KINDS[list];
    const options = { where: { [kind.key]: MoreThan(after) }, order: { [kind.key]: 'ASC' }, take: limit } as const;
    const rows = await this.database.read(kind.entity, options);
    return rows.map((row) => shown(kind, row));
  }

  /** @throws OAuthError `not_found` */
  async read(list: EntryList, key: string): Promise<Entry> {
    const kind = ENTRY_KINDS[list];
    const [row] = await this.database.read(kind.entity, { where: { [kind.key]: key } });
    // to MySQL a key with a space at its end is the same key
    if (row?.[kind.key] !== key) throw OAuthError.notFound();
    return shown(kind, row as ObjectLiteral);
  }

  /**
   * @returns the key of the new entry
   * @throws OAuthError `invalid_request`, `conflict` where there is one of this key or email already
   */
  async create(list: EntryList, sent: Entry): Promise<string> {
    const kind = ENTRY_KINDS[list];
    const entry = entryOf(list, mergePatched({}, sent));
    const key = kind.newKey(entry);
    const passwordHash = await passwordHashOf(entry);
    return this.write(async (manager) => {
      await this.refuseContradictions(manager, list, entry);
      if (await manager.findOneBy(kind.entity, { [kind.key]: key }))
        throw OAuthError.conflict(`${kind.field}: is there already`);
      if (list === 'agents') await refuseSecondAgent(manager, entry);
      const row = { ...withDefaults(kind.rowOf(entry as never, key, passwordHash), kind.defaults), ownedByFile: false };
      await manager.insert(kind.entity, row);
      return key;
    });
  }

  /**
   * Changes the fields that are sent, `null` takes one away (RFC 7396), and what comes of it is checked as a whole.
   *
   * @throws OAuthError `not_found`, `conflict` where the file owns it, `invalid_request`
   */
  async change(list: EntryList, key: string, sent: Entry): Promise<void> {
    const kind = ENTRY_KINDS[list];
    const lasting = ['password', 'secret'].find((field) => sent[field] === null);
    if (lasting !== undefined) throw OAuthError.invalidRequest(`${lasting}: cannot be taken away`);
    const passwordHash = await passwordHashOf(sent);
    const isEnding = list === 'agents' && ENDING.some((field) => field in sent);
    await this.write(async (manager) => {
      const row = await owned(manager, kind, key);
      if (kind.field !== undefined && sent[kind.field] !== undefined && sent[kind.field] !== key) {
        throw OAuthError.invalidRequest(`${kind.field}: cannot be changed`);
      }
      const entry = entryOf(list, mergePatched(kind.entryOf(row as never), sent));
      await this.refuseContradictions(manager, list, entry, [entry.email]);
      if (list === 'agents') await refuseSecondAgent(manager, entry, key);
      const columns = Object.entries(kind.rowOf(entry as never, key, passwordHash));
      const changed = Object.fromEntries(columns.filter(([, value]) => value !== undefined));
      const generation = isEnding && { generation: NEXT_GENERATION };
      await manager.update(kind.entity, { [kind.key]: key }, { ...changed, ...takenAway(sent), ...generation });
      if (isEnding) await this.agents.changed([key], 'before');
      return key;
    });
    if (isEnding) await this.agents.changed([key], 'after');
  }

  /**
   * @param endTokens ends what was issued for it: before it is gone, so that a crash leaves nothing, and after it, for what
   *   was issued meanwhile
   * @throws OAuthError `not_found`, `conflict` where the file owns it or another entry names it
   */
  async delete(list: EntryList, key: string, endTokens: () => Promise<void>): Promise<void> {
    const kind = ENTRY_KINDS[list];
    const end = (moment: 'before' | 'after') => (list === 'agents' ? this.agents.changed([key], moment) : endTokens());
    await this.write(async (manager) => {
      await owned(manager, kind, key);
      if (list === 'organizations') await refuseNamed(manager, key);
      await end('before');
      await manager.delete(kind.entity, { [kind.key]: key });
      return key;
    });
    await end('after');
  }

  /**
   * Gives a client a new secret; the replaced one is valid for so many seconds more.
   *
   * @returns the new secret, which is nowhere else
   * @throws OAuthError `not_found`; `conflict` where the file owns the client, or too many replaced secrets are still valid;
   * `invalid_request` where it has no secret
   */
  async renewSecret(clientId: string, oldValidFor: number): Promise<string> {
    const secret = randomSecret('base64url');
    const kind = ENTRY_KINDS.clients;
    await this.write(async (manager) => {
      const client = (await owned(manager, kind, clientId)) as ClientApplication;
      const columns = withNewSecret(client, sha256(secret), this.clock.now(), oldValidFor);
      await manager.update(ClientApplication, { clientId }, columns);
      return clientId;
    });
    return secret;
  }

  private async write(work: (manager: EntityManager) => Promise<string>): Promise<string> {
    try {
      const done = await this.database.transaction(async (manager) => {
        await manager.increment(RegistryRevision, { id: 1 }, 'revision', 1);
        return work(manager).catch(asRefusal);
      });
      if (done instanceof OAuthError) throw done;
      await this.registry.renew().catch(() => undefined); // it is done; the next look at the revision finds it
      return done;
    } catch (error) {
      if (isDuplicate(error)) throw OAuthError.conflict('is there already');
      throw error;
    }
  }

  /** Refuses what a registry file could not have beside what is registered; `known` are emails that are no new agent's. */
  private async refuseContradictions(
    manager: EntityManager,
    list: EntryList,
    entry: ObjectLiteral,
    known: unknown[] = [],
  ): Promise<void> {
    const document = Object.assign(new RegistryDocument(), { [list]: [entry] });
    const registered = {
      organizations: new Set((await manager.find(Organization)).map(({ id }) => id)),
      resourceServers: new Set((await manager.find(ResourceServer)).map(({ id }) => id)),
      agents: new Set([...(await manager.find(Agent)).map(({ email }) => email), ...known.map(lowered)]),
    };
    const [fault] = contradictionsOf(document, this.catalogue, registered);
    if (fault !== undefined) throw OAuthError.invalidRequest(fault.replace(`${list}[0].`, ''));
  }
}

/** What is refused has changed nothing yet: SQLite's one connection must not roll back what other requests do meanwhile. */
function asRefusal(error: unknown): OAuthError {
  if (error instanceof OAuthError) return error;
  throw error;
}
