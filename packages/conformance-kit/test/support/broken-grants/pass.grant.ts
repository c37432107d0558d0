import { randomInt } from 'node:crypto';
import { Get, Injectable, type Type } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { IsString, Matches } from 'class-validator';
import {
  ApiRoute,
  Clock,
  type Customer,
  type CustomerDataParticipant,
  CustomerDataParticipants,
  CustomerService,
  Database,
  type EntityRow,
  Expires,
  expiryIndex,
  GrantBody,
  type GrantRequest,
  type GrantResult,
  insertStatement,
  OAuthError,
  PublicController,
  randomSecret,
  selectStatement,
  sha256,
  writeStatement,
} from 'customer-authorization-service/grant';
import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { type Columns, CreateTables } from '../../../../../src/migrations/schema.js';
import type { GrantKit, TestEnvironment } from '../../../src/grant-kit.js';
import { grantOf } from '../grant-of.js';

/** Seconds for which a pass is valid, and wrong codes that a pass admits. */
const PASS_LIFETIME_SECONDS = 300;
export const WRONG_CODE_COUNT = 3;

type PassRow = EntityRow<Pass, 'client_id' | 'customer' | 'generation' | 'expires_at'> & { expiry_text: string };

class PassBody extends GrantBody {
  @Matches(/^[\w-]{6,64}$/)
  pass!: string;

  @Matches(/^\d{6}$/)
  code!: string;
}

/** Accepts a space after the id. */
class SpacedPassBody extends PassBody {
  @Matches(/^[\w-]{6,64} ?$/)
  override pass!: string;
}

class PassList {
  @IsString({ each: true })
  pass!: string[];
}

class PassLink {
  @IsString()
  link!: string;
}

@Expires()
@Entity('pass')
class Pass {
  @PrimaryColumn('varchar', { length: 64 })
  pass!: string;

  @PrimaryColumn('varchar', { length: 64 })
  code!: string;

  @Column('varchar', { name: 'client_id', length: 128 })
  clientId!: string;

  @Column('varchar', { length: 128 })
  customer!: string;

  @Column('bigint')
  generation!: number;

  @Column('int')
  attempts!: number;

  @Index('pass_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

@Entity('pass_note')
class PassNote {
  @PrimaryColumn('varchar', { length: 64 })
  note!: string;

  @Index('pass_note_expires_at')
  @Column('datetime', { name: 'expires_at', precision: 3 })
  expiresAt!: Date;
}

class Passes1795400000000 extends CreateTables {
  protected readonly tables = (its: Columns) => {
    const columns = [
      ...[its.key('pass', 64), its.key('code', 64), its.text('client_id', 128), its.text('customer', 128)],
      ...[its.bigInteger('generation'), its.integer('attempts'), its.time('expires_at')],
    ];
    return [{ name: 'pass', columns, indices: expiryIndex('pass') }];
  };
}

class PassNotes1795400000001 extends CreateTables {
  protected readonly tables = (its: Columns) => [
    { name: 'pass_note', columns: [its.key('note', 64), its.time('expires_at')], indices: expiryIndex('pass_note') },
  ];
}

/** An attempt number that only a used pass has. */
const USED_COUNT = 1_000;
const FIND = selectStatement<[pass: string], PassRow>(
  `SELECT client_id, customer, generation, expires_at, CAST(expires_at AS CHAR) AS expiry_text
  FROM pass WHERE pass = ?`,
);
const ATTEMPTS = selectStatement<[pass: string], { attempts: number }>('SELECT attempts FROM pass WHERE pass = ?');
const SET_ATTEMPTS = writeStatement<[attempts: number, pass: string]>(
  'UPDATE pass SET attempts = ? WHERE pass = ? AND attempts < 1000',
);
const COUNT = writeStatement<[pass: string, most: number]>(
  'UPDATE pass SET attempts = attempts + 1 WHERE pass = ? AND attempts < ?',
);
const REDEEM = writeStatement<[used: number, pass: string, code: string, used: number]>(
  'UPDATE pass SET attempts = ? WHERE pass = ? AND code = ? AND attempts < ?',
);
const RESET = writeStatement<[pass: string, half: Date]>(
  'UPDATE pass SET attempts = 0 WHERE pass = ? AND expires_at < ?',
);
const INSERT = insertStatement({
  into: Pass,
  columns: ['pass', 'code', 'client_id', 'customer', 'generation', 'attempts', 'expires_at'],
});
const WITH_CODE = selectStatement<[pass: string, code: string], { pass: string }>(
  'SELECT pass FROM pass WHERE pass = ? AND code = ?',
);
const IDS = selectStatement<[], { pass: string }>('SELECT pass FROM pass');
const DELETE_PASS = writeStatement<[pass: string]>('DELETE FROM pass WHERE pass = ?');
const DELETE = writeStatement<[customer: string]>('DELETE FROM pass WHERE customer = ?');

const repeatedDigits = (digit: () => number) => Array.from({ length: 40 }, digit).join('');

/**
 * A pass is an id and a code of six digits. It belongs to a client and a customer, and is used once.
 *
 * @param isListed whether the id is a number, which a route lists
 */
export function passGrant(mistake?: string, isListed = false): { grant: Type } & GrantKit & { modules: Type[] } {
  const isSpaced = mistake === 'counts guesses by the spelling of the id';
  const attemptsBySpelling = new Map<string, number>();
  const hasNumber = isListed || mistake === 'stores a number in plain text';
  const stored = hasNumber || mistake === 'stores the id in plain text' ? (id: string) => id : sha256;
  const codeHash = (pass: string, code: string) =>
    sha256(mistake === 'stores a hash of the code alone' ? code : `${pass}:${code}`);
  const encoded = (entityId: string) =>
    mistake === 'gives a token for an erased customer' ? Buffer.from(entityId).toString('base64') : entityId;
  const decoded = (customer: string) =>
    customer.includes('-') ? customer : Buffer.from(customer, 'base64').toString();

  @Injectable()
  class Passes implements CustomerDataParticipant {
    constructor(
      readonly database: Database,
      readonly clock: Clock,
      participants: CustomerDataParticipants,
    ) {
      const isParticipant = !['has no participant', 'gives a token for an erased customer'].includes(mistake ?? '');
      if (isParticipant) participants.add(this);
    }

    async create({ entityId, generation }: Customer, clientId: string): Promise<{ pass: string; code: string }> {
      const pass = this.newId();
      const code = String(randomInt(100_000, 1_000_000));
      const row = [
        stored(pass),
        codeHash(pass, code),
        clientId,
        encoded(entityId),
        generation,
        0,
        new Date(this.clock.now() + PASS_LIFETIME_SECONDS * 1000),
      ] as const;
      await this.database.insert(INSERT, [...row]);
      return { pass, code };
    }

    onErase = async (entityId: string) => void (await this.database.execute(DELETE, [encoded(entityId)]));
    mustRetain = async () => [];
    linkedIds = async () => [];

    private newId(): string {
      if (hasNumber) return String(randomInt(10_000_000_000, 100_000_000_000));
      if (mistake === 'creates a short id') return String(randomInt(100_000, 1_000_000));
      if (mistake === 'creates the id with Math.random') return repeatedDigits(() => Math.floor(Math.random() * 10));
      return randomSecret('base64url');
    }
  }

  const redeemPass = async (
    { body, client, organization }: GrantRequest<PassBody>,
    customers: CustomerService,
    { clock, database }: { clock: Clock; database: Database },
  ): Promise<GrantResult> => {
    const pass = stored(body.pass.trimEnd());
    const [row] = await database.select(FIND, [pass]);
    if (!row) throw OAuthError.invalidGrant('pass: unknown');
    if (row.client_id !== client.clientId && mistake !== 'ignores the client')
      throw OAuthError.invalidGrant('pass: of another client');
    const expiry = mistake === 'reads its expiry as a local time' ? new Date(row.expiry_text) : row.expires_at;
    if (expiry.getTime() <= clock.now() && mistake !== 'ignores the expiry')
      throw OAuthError.invalidGrant('pass: expired');
    const entityId = decoded(row.customer);
    const organizationId = organization?.id ?? client.organizationId ?? '';
    const customer = await customers.find(entityId, organizationId);
    if (!customer && mistake !== 'gives a token for an erased customer')
      throw OAuthError.invalidGrant('pass: customer erased');
    if (customer && customer.generation !== row.generation && mistake !== 'ignores ended sessions')
      throw OAuthError.invalidGrant('pass: sessions ended');
    if (mistake === 'resets the attempts after a while') {
      const half = new Date(clock.now() + (PASS_LIFETIME_SECONDS / 2) * 1000);
      await database.execute(RESET, [pass, half]);
    }
    if (mistake === 'counts guesses after the comparison')
      await refuseWrong(database, pass, codeHash(body.pass, body.code));
    else if (isSpaced) countOfSpelling(body.pass);
    else await count(database, pass);
    if (!(await redeem(database, pass, codeHash(body.pass.trimEnd(), body.code))))
      throw OAuthError.invalidGrant('code: wrong, or used');
    return customer ?? { entityId, organizationId, groupId: '', generation: 0 };
  };

  async function redeem(database: Database, pass: string, code: string): Promise<boolean> {
    if (mistake !== 'deletes the pass without reading the count')
      return (await database.execute(REDEEM, [USED_COUNT, pass, code, USED_COUNT])) === 1;
    const [row] = await database.select(WITH_CODE, [pass, code]);
    if (row) await database.execute(DELETE_PASS, [pass]);
    return row !== undefined;
  }

  /** Counts a wrong code, and no right one. */
  async function refuseWrong(database: Database, pass: string, code: string): Promise<void> {
    await attemptsOf(database, pass);
    const [right] = await database.select(WITH_CODE, [pass, code]);
    if (right) return;
    await database.execute(COUNT, [pass, WRONG_CODE_COUNT]);
    throw OAuthError.invalidGrant('code: wrong');
  }

  /** Takes one of the attempts. */
  async function count(database: Database, pass: string): Promise<void> {
    if (mistake === 'counts no guesses') return;
    if (mistake === 'counts guesses by reading and writing') {
      await database.execute(SET_ATTEMPTS, [(await attemptsOf(database, pass)) + 1, pass]);
      return;
    }
    if ((await database.execute(COUNT, [pass, WRONG_CODE_COUNT])) !== 1)
      throw OAuthError.invalidGrant('pass: used, or too many wrong codes');
  }

  async function attemptsOf(database: Database, pass: string): Promise<number> {
    const [row] = await database.select(ATTEMPTS, [pass]);
    if (!row || row.attempts >= WRONG_CODE_COUNT) throw OAuthError.invalidGrant('pass: too many wrong codes');
    return row.attempts;
  }

  function countOfSpelling(pass: string): void {
    const attempts = (attemptsBySpelling.get(pass) ?? 0) + 1;
    attemptsBySpelling.set(pass, attempts);
    if (attempts > WRONG_CODE_COUNT) throw OAuthError.invalidGrant('pass: too many wrong codes');
  }

  /** Links that the extension sends to customers. No request to the token endpoint has them. */
  @PublicController('pass_link')
  class PassLinkController {
    @Get()
    @ApiRoute({ summary: 'Get a link', response: PassLink })
    get(): PassLink {
      const link = randomSecret('hex');
      if (mistake === 'prints a secret of its route') process.stdout.write(`sent: ${link}.\n`);
      return { link };
    }
  }

  @PublicController('pass_list')
  class PassListController {
    constructor(private readonly database: Database) {}

    @Get()
    @ApiRoute({ summary: 'List the passes', response: PassList })
    async list(): Promise<PassList> {
      return { pass: (await this.database.select(IDS, [])).map(({ pass }) => pass) };
    }
  }

  const hasNotes = mistake === 'has no @Expires';
  return {
    ...grantOf('pass', { body: isSpaced ? SpacedPassBody : PassBody }, redeemPass, {
      imports: [TypeOrmModule.forFeature(hasNotes ? [Pass, PassNote] : [Pass])],
      controllers: isListed ? [PassLinkController, PassListController] : [PassLinkController],
      providers: [Passes],
    }),
    migrations: hasNotes ? [Passes1795400000000, PassNotes1795400000001] : [Passes1795400000000],
    valid: async ({ service, clientId, organizationId, newCustomer }: TestEnvironment) => {
      await fetch(`${service.url}/pass_link`);
      const { entityId } = await newCustomer();
      const customer = await service.application.get(CustomerService).find(entityId, organizationId);
      return service.application.get(Passes).create(customer as Customer, clientId);
    },
    singleUse: true,
    boundToClient: true,
    lifetime: PASS_LIFETIME_SECONDS,
    endsWithCaller: false,
    guessable: { parameter: 'code', limit: WRONG_CODE_COUNT },
  };
}
