import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { RegistryResource } from './resources/registry-resource.js';

/**
 * Ends the tokens of entries.
 *
 * @param keys the keys of the admin API
 * @param manager only with `before`: the transaction that changes or deletes the entries. Their generations are raised
 *   already.
 */
export type TokenRevoker = (keys: string[], moment: 'before' | 'after', manager?: EntityManager) => Promise<void>;

/**
 * Ends the tokens of registry entries that are changed or deleted. The modules that issue the tokens register revokers.
 */
@Injectable()
export class TokenRevokers {
  private readonly revokers: { resource: RegistryResource; revoke: TokenRevoker }[] = [];

  register(resource: RegistryResource, revoke: TokenRevoker): void {
    this.revokers.push({ resource, revoke });
  }

  /**
   * Called twice: before the change is committed, so that a crash leaves no valid token, and after it, for tokens that
   * were issued in the meantime.
   */
  async revoke(resource: RegistryResource, ...revocation: Parameters<TokenRevoker>): Promise<void> {
    for (const { resource: other, revoke } of this.revokers) if (other === resource) await revoke(...revocation);
  }
}
