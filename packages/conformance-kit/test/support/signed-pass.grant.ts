import {
  GrantBody,
  type GrantRequest,
  insertIgnoreStatement,
  JwtIssuer,
  OAuthError,
  selectStatement,
  UUID,
  writeStatement,
} from '@customer-authorization/service/grant';
import type { Type } from '@nestjs/common';
import { Matches, MaxLength } from 'class-validator';
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
  jwtVerify,
  SignJWT,
} from 'jose';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { type Columns, CreateTables } from '../../../../src/migrations/schema.js';
import type { Random } from '../../../../test/fuzz/random.js';
import type { GrantKit } from '../../src/kit.js';
import { OWN } from '../../src/kit-registry.js';
import type { TestEnvironment } from '../../src/test-environment.js';
import { grantOf, type Services } from './grant-of.js';
import { makes } from './mistake.js';

const ALG = 'ES256';
const [OWN_KEYS, FOREIGN_KEYS] = [await generateKeyPair(ALG, { extractable: true }), await generateKeyPair(ALG)];
const jwksOf = async ({ publicKey }: typeof OWN_KEYS) => ({
  keys: [{ ...(await exportJWK(publicKey)), kid: 'key-1', alg: ALG, use: 'sig' }],
});
const [OWN_JWKS, FOREIGN_JWKS] = [await jwksOf(OWN_KEYS), await jwksOf(FOREIGN_KEYS)];
const ISSUER = 'https://airline.example';
const FOREIGN_ISSUER = 'https://railway.example';

/** How often and how long a pass works. */
export interface PassForm {
  uses: number | 'unlimited';
  lifetime: number;
  isByKey: boolean;
}

export const PASS_FORM: PassForm = { uses: 3, lifetime: 86_400, isByKey: false };

class PassBody extends GrantBody {
  @Matches(UUID)
  override organization_id!: string;

  @MaxLength(2_000)
  pass!: string;
}

@Entity('kit_pass_use')
class PassUse {
  @PrimaryColumn('varchar', { length: 64 })
  id!: string;

  @Column('int')
  uses!: number;
}

class PassUses1795800000001 extends CreateTables {
  protected readonly tables = (its: Columns) => [
    { name: 'kit_pass_use', columns: [its.key('id', 64), its.integer('uses')] },
  ];
}

const FIRST = insertIgnoreStatement({ into: PassUse, columns: ['id', 'uses'] });
const READ = selectStatement<[id: string], { uses: number }>('SELECT uses FROM kit_pass_use WHERE id = ?');
const WRITE = writeStatement<[uses: number, id: string]>('UPDATE kit_pass_use SET uses = ? WHERE id = ?');

/** A pass is a JWT that another system signs. It gives several tokens. */
export function signedPass(form = PASS_FORM): { grant: Type } & GrantKit {
  const { uses, lifetime, isByKey } = form;
  const inMemory = new WeakMap<object, Map<string, number>>();
  let serial = 0;

  async function claimsOf(pass: string, issuer: JwtIssuer, { jwtProofs, clock }: Services) {
    const now = { currentDate: new Date(clock.now()) };
    if (makes('checks no signature')) return claims(decodeJwt(pass));
    if (makes('accepts unsigned passes') && headerOf(pass).alg === 'none') return claims(decodeJwt(pass));
    if (makes('takes the key from the pass')) {
      const key = headerOf(pass).jwk;
      if (key) return claims((await jwtVerify(pass, await importJWK(key, ALG), now)).payload);
    }
    if (makes('accepts the keys of all organizations')) {
      const verified = await Promise.any(
        [OWN_JWKS, FOREIGN_JWKS].map((keys) => jwtVerify(pass, createLocalJWKSet(keys), now)),
      );
      return claims(verified.payload);
    }
    const proven = await jwtProofs.verify(pass, issuer);
    return { jti: proven.jti, sub: proven.sub, expiresAt: proven.expiresAt };
  }

  const headerOf = (pass: string) => decodeProtectedHeader(pass) as { alg?: string; jwk?: JWK };
  const refuse = (): never => {
    throw OAuthError.invalidGrant('no valid pass');
  };
  const claims = ({ jti = '', sub = '', exp = 0 }: { jti?: string; sub?: string; exp?: number }) => ({
    jti,
    sub,
    expiresAt: new Date(exp * 1_000),
  });

  async function count(
    request: GrantRequest<PassBody>,
    key: string,
    expiresAt: Date,
    services: Services,
    processKey: object,
  ) {
    if (uses === 'unlimited') {
      if (expiresAt.getTime() <= services.clock.now()) refuse();
      return;
    }
    if (makes('counts by SELECT and UPDATE')) {
      Object.assign(request, { counted: {} });
      await services.database.execute(FIRST, [key, 0]);
      const [row] = await services.database.select(READ, [key]);
      if (!row || row.uses >= uses) refuse();
      await services.database.execute(WRITE, [(row?.uses ?? 0) + 1, key]);
      return;
    }
    if (makes('counts in memory')) {
      Object.assign(request, { counted: {} });
      const counts = inMemory.get(processKey) ?? new Map<string, number>();
      inMemory.set(processKey, counts);
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if ((counts.get(key) ?? 0) > uses) refuse();
      return;
    }
    return services.uses.count(request, key, expiresAt);
  }

  return {
    ...grantOf<PassBody>(
      'kit_pass',
      { body: PassBody, settings: JwtIssuer, lifetime, uses },
      async (request, customers, services) => {
        const { body, organization } = request;
        const issuer = organization?.grants.kit_pass as JwtIssuer | undefined;
        if (!issuer) throw OAuthError.unauthorizedClient('grant_type: the organization has no issuer');
        const { jti, sub, expiresAt } = await claimsOf(body.pass, issuer, services).catch(refuse);
        await count(request, `${issuer.issuer} ${jti}`.slice(-64), expiresAt, services, customers);
        return isByKey ? services.byKey.customerOf(request, 'passenger', sub) : customers.create(body.organization_id);
      },
      { customerKeyFile: 'KIT_PASS_KEY_FILE', entities: [PassUse], migrations: [PassUses1795800000001] },
    ),
    settings: {
      organization: { issuer: ISSUER, jwks: OWN_JWKS },
      other: { organization: { issuer: FOREIGN_ISSUER, jwks: FOREIGN_JWKS } },
    },
    valid: ({ organizationId, service }: TestEnvironment) => {
      const isOwn = organizationId === OWN.organizationId;
      const now = Math.floor(service.clock.now() / 1_000);
      return new SignJWT({ seat: '12A' })
        .setProtectedHeader({ alg: ALG, kid: 'key-1' })
        .setIssuer(isOwn ? ISSUER : FOREIGN_ISSUER)
        .setSubject(`passenger-${serial++}`)
        .setJti(`pass-${serial}-${Math.random()}`)
        .setAudience('https://auth.example')
        .setIssuedAt(now)
        .setExpirationTime(now + lifetime)
        .sign((isOwn ? OWN_KEYS : FOREIGN_KEYS).privateKey)
        .then((pass) => ({ pass }));
    },
  };
}

export function randomPassForm(random: Random): PassForm {
  return {
    uses: random.pick([1, 2, 7, 'unlimited']),
    lifetime: random.pick([60, 3_600, 86_400]),
    isByKey: random.chance(0.5),
  };
}
