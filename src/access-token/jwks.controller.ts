import { Get, Header } from '@nestjs/common';
import { PublicController } from '../platform/http/surfaces.js';
import type { PublicJwk } from './key-set.js';
import { SigningKeys } from './signing-keys.js';

/** The public keys with which anybody checks our tokens without asking us (RFC 7517 section 5). */
@PublicController('.well-known/jwks.json')
export class JwksController {
  constructor(private readonly keys: SigningKeys) {}

  @Get()
  @Header('Cache-Control', 'public, max-age=300')
  @Header('Access-Control-Allow-Origin', '*')
  jwks(): { keys: PublicJwk[] } {
    return this.keys.publicKeySet();
  }
}
