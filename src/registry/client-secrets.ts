import { Injectable } from '@nestjs/common';
import { OAuthError } from '../oauth/oauth-error.js';
import { Clock } from '../platform/clock.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { ClientApplication } from './client-application.entity.js';
import { editableRow } from './entries/database-checks.js';
import { withNewSecret } from './previous-secrets.js';
import { RegistryTransactions } from './registry-transactions.js';
import { clientResource } from './resources/client.resource.js';

/** The hint for a client that gets no first secret. */
export const NO_SERVER = 'client_id: a client without a secret, and its client_type is not server';

export interface NewClientSecret {
  /** The secret, which is stored only as a hash. */
  secret: string;
  /** Whether it replaces no other secret. */
  isFirst: boolean;
}

/**
 * Generates secrets for clients. A replaced secret stays valid for a while. An operator who chooses the secret sets
 * `client_secret` instead, which ends all earlier secrets (client.resource.ts).
 */
@Injectable()
export class ClientSecrets {
  constructor(
    private readonly transactions: RegistryTransactions,
    private readonly clock: Clock,
  ) {}

  /**
   * Gives a client a new secret. A replaced secret stays valid for the given time. A client of type `server` may get its
   * first secret. A client of another type may not, because its installed copies have no secret and would be rejected.
   *
   * @throws OAuthError `not_found`; `conflict` if the file owns the client, or too many replaced secrets are still
   * valid; `invalid_request` for the first secret of a client that is no server
   */
  async renew(clientId: string, oldValidForSeconds: number): Promise<NewClientSecret> {
    const secret = randomSecret('base64url');
    let isFirst = false;
    await this.transactions.run({ resource: clientResource, key: clientId }, async (manager) => {
      const row = await manager.findOneBy(ClientApplication, { clientId });
      const client = editableRow(row, 'clientId', clientId);
      isFirst = client.secretHash === null;
      if (isFirst && client.clientType !== 'server') throw OAuthError.invalidRequest(NO_SERVER);
      const columns = withNewSecret(client, sha256(secret), this.clock.now(), oldValidForSeconds);
      await manager.update(ClientApplication, { clientId }, columns);
    });
    return { secret, isFirst };
  }
}
