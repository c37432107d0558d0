import { IsIn, IsString } from 'class-validator';
import { ApiProperty } from '../platform/http/api-property.js';

/** The public part of a key, as the JWKS publishes it. */
export class PublicJwk {
  @IsIn(['EC'])
  @ApiProperty('The type of the key: elliptic curve.', 'EC')
  kty!: 'EC';

  @IsIn(['P-256'])
  @ApiProperty('The curve of the key.', 'P-256')
  crv!: 'P-256';

  @IsString()
  @ApiProperty('The x coordinate of the public key, in base64url.', 'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4')
  x!: string;

  @IsString()
  @ApiProperty('The y coordinate of the public key, in base64url.', '4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM')
  y!: string;

  @IsString()
  @ApiProperty('The id of the key. The header of each token names it.', 'EXAMPLE-KEY')
  kid!: string;

  @IsIn(['ES256'])
  @ApiProperty('The algorithm of the signatures.', 'ES256')
  alg!: 'ES256';

  @IsIn(['sig'])
  @ApiProperty('The key verifies signatures.', 'sig')
  use!: 'sig';
}
