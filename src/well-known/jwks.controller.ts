import { Get, Header } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, ValidateNested } from 'class-validator';
import { PublicJwk } from '../access-token/key-set.js';
import { SigningKeys } from '../access-token/signing-keys.js';
import { ApiRoute } from '../platform/http/api-route.js';
import { PublicController } from '../platform/http/surfaces.js';

class PublicKeySet {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => PublicJwk)
  keys: PublicJwk[];
}

/** The public keys with which resource servers verify tokens without a request per token (RFC 7517 §5). */
@PublicController('.well-known/jwks.json')
export class JwksController {
  constructor(private readonly keys: SigningKeys) {}

  @Get()
  @ApiRoute({ summary: 'Get the public keys that verify tokens (RFC 7517)', response: PublicKeySet })
  @Header('Cache-Control', 'public, max-age=300')
  @Header('Access-Control-Allow-Origin', '*')
  jwks(): PublicKeySet {
    return this.keys.publicKeySet();
  }
}
