import { randomInt } from 'node:crypto';
import {
  ApiRoute,
  Caller,
  Clock,
  type CustomerDataParticipant,
  CustomerGuard,
  type CustomerPrincipal,
  Database,
  type EntityRow,
  Expires,
  type ExportedRows,
  expiryIndex,
  GrantBody,
  type GrantRequest,
  insertStatement,
  OAuthError,
  PublicController,
  randomSecret,
  selectStatement,
  sha256,
  writeStatement,
} from '@customer-authorization/service/grant';
import { HttpCode, Injectable, Logger, Post } from '@nestjs/common';
import { IsNotEmpty, IsString, Matches } from 'class-validator';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { type Columns, CreateTables } from '../../../../src/migrations/schema.js';
import type { Random } from '../../../../test/fuzz/random.js';
import type { TestedGrant, TestedRoute } from './failures-of.js';
import { grantOf, type Services } from './grant-of.js';
import { makes } from './mistake.js';

const VOUCHER = 'POST /v2/customer/kit_voucher';

/** What a correct voucher has. */
export interface VoucherForm {
  lifetime: number;
  endsWith: 'caller' | 'sessions';
  anyClient: boolean;
}

export const VOUCHER_FORM: VoucherForm = { lifetime: 300, endsWith: 'caller', anyClient: false };

class VoucherBody extends GrantBody {
  @Matches(/^[\w-]{6,200}$/)
  voucher!: string;
}

class AnyVoucherBody extends GrantBody {
  @IsNotEmpty()
  voucher!: string;
}

class VoucherResponse {
  @IsString()
  voucher!: string;
}

@Expires()
@Entity('kit_voucher')
class Voucher {
  @PrimaryColumn('varchar', { length: 64 })
  hash!: string;

  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  @Column('varchar', { name: 'entity_id', length: 64 })
  entityId!: string;

  @Column('varchar', { name: 'organization_id', length: 36 })
  organizationId!: string;

  @Column('bigint')
  generation!: number;

  @Column('varchar', { length: 128 })
  proof!: string;

  @Column('int')
  uses!: number;

  @Index('kit_voucher_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

class Vouchers1795400000000 extends CreateTables {
  protected readonly tables = (its: Columns) => {
    const columns = [
      ...[its.key('hash', 64), its.text('client_id', 128), its.text('entity_id', 64), its.text('organization_id', 36)],
      ...[its.bigInteger('generation'), its.text('proof', 128), its.integer('uses'), its.time('expires_at')],
    ];
    return [{ name: 'kit_voucher', columns, indices: expiryIndex('kit_voucher') }];
  };
}

const COLUMNS = ['client_id', 'entity_id', 'organization_id', 'generation', 'proof', 'expires_at', 'uses'] as const;
type Row = EntityRow<Voucher, (typeof COLUMNS)[number]>;
const INSERT = insertStatement({ into: Voucher, columns: ['hash', ...COLUMNS] });
const FIND = selectStatement<[hash: string], Row>(`SELECT ${COLUMNS.join(', ')} FROM kit_voucher WHERE hash = ?`);
const REDEEM = writeStatement<[hash: string]>('UPDATE kit_voucher SET uses = 1 WHERE hash = ? AND uses = 0');
const USE = writeStatement<[hash: string]>('UPDATE kit_voucher SET uses = 1 WHERE hash = ?');
const REVIVE = writeStatement<[hash: string, soon: Date]>(
  'UPDATE kit_voucher SET uses = 0 WHERE hash = ? AND expires_at < ?',
);
const DELETE = writeStatement<[entityId: string]>('DELETE FROM kit_voucher WHERE entity_id = ?');
const EXPORT = selectStatement<[entityId: string], { expires_at: Date; hash: string }>(
  'SELECT hash, expires_at FROM kit_voucher WHERE entity_id = ?',
);

/** A route gives a customer a voucher of the team's own table, and a grant redeems it once. */
export function voucher(form = VOUCHER_FORM): { ofGrant: TestedGrant; ofRoute: TestedRoute } {
  const { lifetime, endsWith, anyClient } = form;
  const hashOf = (text: string) =>
    makes('stores the voucher in plain text') || makes('stores the longest text') ? text : sha256(text);

  function newVoucher(): string {
    if (makes('creates a short voucher') || makes('stores a hash of a short voucher')) return `${randomInt(1e5, 1e6)}`;
    if (makes('creates the voucher with Math.random'))
      return Array.from({ length: 40 }, () => Math.floor(Math.random() * 10)).join('');
    return randomSecret('base64url');
  }

  @Injectable()
  class VoucherParticipant implements CustomerDataParticipant {
    constructor(private readonly database: Database) {}

    async onErase(entityId: string): Promise<void> {
      if (!makes('erases nothing')) await this.database.execute(DELETE, [entityId]);
    }

    async exportRows(entityId: string): Promise<ExportedRows> {
      const rows = await this.database.select(EXPORT, [entityId]);
      if (makes('fails to export rows') && rows.length > 0) throw new TypeError('no rows');
      return { kit_voucher: rows.map(({ hash, ...row }) => ({ ...row, ...(makes('exports the hash') && { hash }) })) };
    }
  }

  @PublicController('v2/customer/kit_voucher')
  class VoucherController {
    constructor(
      private readonly database: Database,
      private readonly clock: Clock,
    ) {}

    @Post()
    @HttpCode(200)
    @ApiRoute({ summary: 'Create a voucher', response: VoucherResponse, errors: ['429 temporarily_unavailable'] })
    async create(@Caller(CustomerGuard) customer: CustomerPrincipal): Promise<VoucherResponse> {
      const text = newVoucher();
      const { entityId, organizationId, claims, clientId } = customer;
      const proof = endsWith === 'caller' ? await customer.proof() : '';
      const expiresAt = new Date(this.clock.now() + lifetime * 1_000);
      const row = [clientId ?? '', entityId, organizationId, claims.gen ?? 0, proof, expiresAt, 0] as const;
      await this.database.insert(INSERT, [hashOf(text), ...row]);
      if (makes('prints a secret of its route')) process.stdout.write(`created ${text}.\n`);
      return { voucher: text };
    }
  }

  async function redeem({ body, client, organization }: GrantRequest<VoucherBody>, { database, clock }: Services) {
    if (makes('logs the voucher')) new Logger('Vouchers').debug(`asked for ${body.voucher}`);
    if (makes('fails for a name of an object') && body.voucher in {}) throw new TypeError('no function');
    const hash = hashOf(body.voucher);
    if (makes('stores the longest text')) {
      const row = ['', '', '', 0, '', new Date(clock.now() + 1_000), 1] as const;
      await database.insert(INSERT, [hash, ...row]).catch(() => undefined);
    }
    const [row] = await database.select(FIND, [hash]);
    if (!row && makes('repeats the voucher in a hint')) throw OAuthError.invalidRequest(`voucher: ${body.voucher}`);
    if (!row) throw OAuthError.invalidGrant('unknown');
    if (makes('revives in a purge')) await database.execute(REVIVE, [hash, new Date(clock.now() + lifetime * 500)]);
    if (row.client_id !== client.clientId && !anyClient && !makes('ignores the client'))
      throw OAuthError.invalidGrant('of another client');
    const elsewhere = organization ? row.organization_id !== organization.id : !client.usableIn(row.organization_id);
    if (elsewhere) throw OAuthError.invalidGrant('of another organization');
    if (row.expires_at.getTime() <= clock.now() && !makes('ignores the expiry'))
      throw OAuthError.invalidGrant('expired');
    if (makes('redeems by SELECT and UPDATE')) {
      if (row.uses > 0) throw OAuthError.invalidGrant('used');
      await database.execute(USE, [hash]);
    } else if (makes('redeems again and again')) await database.execute(USE, [hash]);
    else if ((await database.execute(REDEEM, [hash])) !== 1) throw OAuthError.invalidGrant('used');
    return row;
  }

  const declared = {
    ...(makes('declares no lifetime') ? {} : { lifetime }),
    ...(makes('ignores the end') ? {} : { endsWith }),
  };
  const { grant, ...extension } = grantOf<VoucherBody>(
    'kit_voucher',
    { body: makes('accepts any value') ? AnyVoucherBody : VoucherBody, anyClient, ...declared },
    async (request, customers, services) => {
      const attempt = redeem(request, services);
      const row = await (makes('calls each error invalid')
        ? attempt.catch(() => Promise.reject(OAuthError.invalidGrant('any error')))
        : attempt);
      const { entity_id: entityId, organization_id: organizationId } = row;
      if (makes('creates a customer before it refuses')) {
        await customers.create(organizationId);
        throw OAuthError.invalidGrant('too late');
      }
      if (makes('ignores the end')) return { entityId, organizationId };
      const ofSessions = endsWith === 'sessions' ? { generation: Number(row.generation) } : { proof: row.proof };
      return { entityId, organizationId, ...ofSessions };
    },
    {
      controllers: [VoucherController],
      entities: [Voucher],
      migrations: [Vouchers1795400000000],
      participants: [VoucherParticipant],
    },
  );
  return {
    ofGrant: {
      grant,
      ...extension,
      valid: async ({ service, newCustomer }) => {
        const headers = { authorization: `Bearer ${(await newCustomer()).accessToken}` };
        return { voucher: (await service.post('/v2/customer/kit_voucher', '', headers)).body.voucher };
      },
    },
    ofRoute: {
      route: VOUCHER,
      ...extension,
      callers: ['customer'],
      actsOn: 'own caller',
      anyClient: true,
      valid: () => ({}),
    },
  };
}

export function randomVoucherForm(random: Random): VoucherForm {
  return {
    lifetime: random.pick([60, 300, 3_600]),
    endsWith: random.pick(['caller', 'sessions']),
    anyClient: random.chance(0.5),
  };
}
