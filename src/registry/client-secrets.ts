import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { randomSecret, sha256 } from '../platform/secret.js';
import { ClientApplication } from './client-application.entity.js';
import { editableRow } from './entries/database-checks.js';
import { withNewSecret } from './previous-secrets.js';
import { RegistryTransactions } from './registry-transactions.js';

/** Replaces the secrets of clients. */
@Injectable()
export class ClientSecrets {
  constructor(
    private readonly transactions: RegistryTransactions,
    private readonly clock: Clock,
  ) {}

  /**
   * Gives a client a new secret. The replaced secret stays valid for the given time.
   *
   * @returns the new secret, which is stored only as a hash
   * @throws OAuthError `not_found`; `conflict` if the file owns the client, or too many replaced secrets are still
   * valid; `invalid_request` if the client has no secret
   */
  async renew(clientId: string, oldValidForSeconds: number): Promise<string> {
    const secret = randomSecret('base64url');
    await this.transactions.run(async (manager) => {
      const row = await manager.findOneBy(ClientApplication, { clientId });
      const client = editableRow(row, 'clientId', clientId);
      const columns = withNewSecret(client, sha256(secret), this.clock.now(), oldValidForSeconds);
      await manager.update(ClientApplication, { clientId }, columns);
    });
    return secret;
  }
}
