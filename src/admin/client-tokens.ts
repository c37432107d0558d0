import { Injectable, type OnModuleInit } from '@nestjs/common';
import { Denylist } from '../access-token/denylist.js';
import { EndedTokens } from '../registry/ended-tokens.js';
import { clientResource } from '../registry/resources/client.resource.js';

/** Ends the tokens of a client that is deleted. */
@Injectable()
export class ClientTokens implements OnModuleInit {
  constructor(
    private readonly endedTokens: EndedTokens,
    private readonly denylist: Denylist,
  ) {}

  onModuleInit(): void {
    this.endedTokens.onEnd(clientResource, async (clientIds) => {
      for (const clientId of clientIds) await this.denylist.revokeClient(clientId);
    });
  }
}
