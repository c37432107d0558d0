import { applyDecorators } from '@nestjs/common';
import { IsObject, IsString, Length, ValidateBy } from 'class-validator';
import type { JSONWebKeySet } from 'jose';
import { ArePublicKeys, IsKeyFileName, IsKeySetUrl, IsWithout } from '../oauth/key-rules.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { Nested, Optional } from '../platform/validation/validation.js';

/** The identity of a service at a platform, such as a Kubernetes service account. */
export class FederatedIdentity {
  @IsString()
  @Length(1, 255)
  @ApiProperty('The exact `iss` of the tokens of the platform.', 'https://kubernetes.default.svc.cluster.local')
  issuer!: string;

  @IsString()
  @Length(1, 255)
  @ApiProperty('The exact `sub`.', 'system:serviceaccount:chat:backend')
  subject!: string;

  @Optional()
  @IsString()
  @Length(1, 255)
  @ApiProperty('The only value of `aud`. If omitted: AUTH_URL.', 'https://auth.example')
  audience?: string;

  @ArePublicKeys({ unless: ['jwks_uri', 'jwks_file'] })
  @ApiProperty('The public keys of the platform; required without `jwks_uri` and `jwks_file`.', {
    keys: [EXAMPLE.publicKey],
  })
  jwks?: JSONWebKeySet;

  @Optional()
  @IsKeySetUrl()
  @ApiProperty('The https URL of these keys.', 'https://oidc.platform.example/keys')
  jwks_uri?: string;

  @Optional()
  @IsKeyFileName()
  @IsWithout('jwks_uri')
  @ApiProperty('The name of a file in `JWKS_DIR` with these keys.', 'cluster.json')
  jwks_file?: string;
}

/** A rule of each key field: no other one is present, and a client is of the type `server`. */
const IsKeyFieldWithout = (...others: string[]) =>
  applyDecorators(
    Optional(),
    IsWithout(...others),
    ValidateBy({
      name: 'isOfServer',
      validator: {
        validate: (_value, context) =>
          [undefined, 'server'].includes(Reflect.get(context?.object ?? {}, 'client_type')),
        defaultMessage: () => 'only for a client of the type server',
      },
    }),
  );

/** The fields of an entry that authenticates by `private_key_jwt` (protocol §2.7). */
export abstract class AssertionKeyFields {
  @IsKeyFieldWithout('jwks_uri', 'federated')
  @ArePublicKeys()
  @ApiProperty('The public keys of the assertions that the service signs itself: 1 to 20.', {
    keys: [EXAMPLE.publicKey],
  })
  jwks?: JSONWebKeySet;

  @IsKeyFieldWithout('jwks', 'federated')
  @IsKeySetUrl()
  @ApiProperty('The https URL of these keys, in place of `jwks`.', 'https://backend.example/jwks.json')
  jwks_uri?: string;

  @IsKeyFieldWithout('jwks', 'jwks_uri')
  @IsObject()
  @Nested(() => FederatedIdentity)
  @ApiProperty('The tokens of a platform that authenticate the service, in place of `jwks` and `jwks_uri`.')
  federated?: FederatedIdentity;
}

/** As the column of an entry has it. */
export type AssertionKeys = Pick<AssertionKeyFields, 'jwks' | 'jwks_uri' | 'federated'>;

/** `null` if the entry has no such keys. The order of the members is fixed, so that equal values have equal texts. */
export function assertionKeysOf({ jwks, jwks_uri, federated }: AssertionKeyFields): AssertionKeys | null {
  if (federated) {
    const { issuer, subject, audience, jwks, jwks_uri, jwks_file } = federated;
    return { federated: { issuer, subject, audience, jwks, jwks_uri, jwks_file } as FederatedIdentity };
  }
  return jwks || jwks_uri ? ({ jwks, jwks_uri } as AssertionKeys) : null;
}

/** The fields of an entry. Absent fields are `undefined`, so that the audit names a field that was added. */
export function assertionKeyFields(keys: AssertionKeys | null): AssertionKeys {
  return { jwks: keys?.jwks, jwks_uri: keys?.jwks_uri, federated: keys?.federated } as AssertionKeys;
}
