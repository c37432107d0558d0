import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import type { Customer, CustomerSpace } from '../../customer/customer.js';
import { type CustomerRow, Customers, USER_KEYS } from '../../customer/customers.js';
import { CustomerCreation } from '../../identity/customer-creation.js';
import { ExtensionHooks } from '../../identity/extension-hooks.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Clock } from '../../platform/clock.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { Database } from '../../platform/database/database.js';
import { generatedFile } from '../../platform/files/generated-file.js';
import { derivedSecret, randomSecret } from '../../platform/secret.js';
import { uuidv7 } from '../../platform/uuid.js';
import { SNAKE_CASE_NAME } from '../../platform/validation/text-rules.js';
import type { AnyGrantRequest } from '../grant.js';

const MIN_SECRET_CHARACTERS = 32;
const MAX_NAMESPACE_CHARACTERS = 64;
/** A request reads again after a parallel request has created the customer. Only erasures in between reach this limit. */
const MAX_READS = 3;

/** The customers of keys such as phones: the same key leads to the same customer of the organization and group. */
@Injectable()
export class CustomersByKey implements OnModuleInit {
  private secret: string | undefined;

  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly configuration: Configuration,
    private readonly hooks: ExtensionHooks,
    private readonly customers: Customers,
    private readonly creation: CustomerCreation,
  ) {}

  /** @throws Error if the extension names a variable without a usable file */
  onModuleInit(): void {
    const { customerKeyFile: variable } = this.hooks;
    const isNeeded = !this.configuration.unused.includes('SIGNING_KEYS_FILE');
    if (variable !== undefined && isNeeded) this.secret = secretIn(variable, this.configuration);
  }

  /**
   * The customer of a key, which is created if there is none. The service stores an HMAC of the key, and erases it with the
   * customer.
   *
   * @param namespace what the key is, such as `phone`; grants with the same namespace share customers
   * @param key in one spelling
   * @throws OAuthError 429 if a network creates too many customers; 503 while the customer is being erased
   */
  async customerOf(request: AnyGrantRequest, namespace: string, key: string): Promise<Customer> {
    const { organization, groupId, agent, declared } = request;
    if (!organization) throw new Error(`${declared.name}: the body must require organization_id`);
    if (!SNAKE_CASE_NAME.test(namespace) || namespace.length > MAX_NAMESPACE_CHARACTERS || namespace === USER_KEYS)
      throw new Error(`${declared.name}: the namespace of a key must be a name in snake_case other than ${USER_KEYS}`);
    const space = { organizationId: organization.id, groupId };
    const hash = this.hashOf(namespace, space, key);
    const takeLimit = this.creation.limitOnce();
    const creator = agent ? 'agent' : 'organization';
    for (let reads = 0; reads < MAX_READS; reads++) {
      const known = await this.customers.findByKey(hash);
      if (known) return customerIn(known);
      const entityId = uuidv7(this.clock.now());
      const generation = await this.insert({ hash, namespace }, { ...space, entityId }, creator, takeLimit);
      if (generation === undefined) continue;
      this.creation.auditCreated(creator, entityId, space.organizationId);
      return { entityId, ...space, generation, hasUser: false };
    }
    throw OAuthError.unavailable();
  }

  /** @returns `undefined` if a parallel request has inserted the key */
  private async insert(
    { hash, namespace }: { hash: string; namespace: string },
    { entityId, ...space }: CustomerSpace & { entityId: string },
    creator: 'agent' | 'organization',
    takeLimit: () => void,
  ): Promise<number | undefined> {
    try {
      return await this.database.transaction(async (manager) => {
        const generation = await this.customers.insertIn(manager, entityId, space, creator);
        if (!(await this.customers.insertKeyIn(manager, hash, entityId, namespace))) throw new KeyExistsError();
        takeLimit();
        return generation;
      });
    } catch (error) {
      if (error instanceof KeyExistsError) return undefined;
      throw error;
    }
  }

  private hashOf(namespace: string, { organizationId, groupId }: CustomerSpace, key: string): string {
    if (this.secret === undefined) throw new Error('CustomersByKey needs `customerKeyFile` in defineExtension');
    return derivedSecret(this.secret, JSON.stringify([namespace, organizationId, groupId, key]));
  }
}

/** A parallel request has created the customer. Rolls the transaction back. */
class KeyExistsError extends Error {}

function customerIn(row: CustomerRow): Customer {
  if (row.erased_at !== null) throw OAuthError.unavailable();
  const { entity_id: entityId, organization_id: organizationId, group_id: groupId, generation } = row;
  return { entityId, organizationId, groupId, generation, hasUser: Boolean(row.has_user) };
}

function secretIn(variable: string, { embedded, DATA_DIR }: Configuration): string {
  const named = process.env[variable];
  if (!named && !embedded)
    throw new Error(
      `${variable}: required, because all processes must use the same key; name a file with 32 random characters or more`,
    );
  const path = named || generatedFile(join(DATA_DIR, 'customer-key'), 'a key of customers', () => randomSecret('hex'));
  const secret = readText(variable, path);
  if (secret.length >= MIN_SECRET_CHARACTERS) return secret;
  throw new Error(`${variable}: the file must have at least ${MIN_SECRET_CHARACTERS} characters`);
}

function readText(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    throw new Error(`${variable}: the file cannot be read`);
  }
}
