import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { clientResource } from '../registry/resources/client.resource.js';
import { TokenRevokers } from '../registry/token-revokers.js';

/** Ends the tokens of a client that is deleted. */
@Injectable()
export class ClientTokens implements OnModuleInit {
  constructor(
    private readonly tokenRevokers: TokenRevokers,
    private readonly denylist: Denylist,
  ) {}

  onModuleInit(): void {
    this.tokenRevokers.register(clientResource, async (clientIds, _moment, manager) => {
      for (const clientId of clientIds) await this.denylist.revokeClient(clientId, manager);
    });
  }
}
