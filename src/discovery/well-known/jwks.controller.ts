import { Get, Header } from '@nestjs/common';
import { IsArray } from 'class-validator';
import { PublicJwk } from '../../access-token/key-set.js';
import { SigningKeys } from '../../access-token/signing-keys.js';
import { ApiProperty, ApiRoute } from '../../platform/http/api-route.js';
import { PublicController } from '../../platform/http/listener.decorators.js';
import { Nested } from '../../platform/validation/validation.js';

class PublicKeySet {
  @IsArray()
  @Nested(() => PublicJwk, { each: true })
  @ApiProperty('The keys that have signed valid tokens or will sign tokens soon.')
  keys!: PublicJwk[];
}

/** The public keys with which resource servers verify tokens without a request per token (RFC 7517 §5). */
@PublicController('.well-known/jwks.json')
export class JwksController {
  constructor(private readonly keys: SigningKeys) {}

  @Get()
  @ApiRoute({
    summary: 'Get the public keys that verify tokens (RFC 7517)',
    description:
      'A service that receives tokens verifies their signature with these keys. Cache the keys for 5 minutes, and fetch them when a token names an unknown key.',
    response: PublicKeySet,
  })
  @Header('Cache-Control', 'public, max-age=300')
  @Header('Access-Control-Allow-Origin', '*')
  jwks(): PublicKeySet {
    return this.keys.publicKeySet();
  }
}
