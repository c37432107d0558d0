import { Injectable, type Type } from '@nestjs/common';
import { SigningKeys } from '../../access-token/signing-keys.js';
import type { Principal } from '../../http/callers/principal.js';
import type { CustomerDataParticipant, ExportedRows } from '../../identity/customer-data-participant.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { Clock } from '../../platform/clock.js';
import { Database } from '../../platform/database/database.js';
import { derivedSecret, equalInConstantTime, randomDigits, randomSecret, sha256 } from '../../platform/secret.js';
import { type AnyGrantRequest, GrantDecorator, type GrantMetadata, type GrantResult } from '../grant.js';
import {
  COUNT_GUESS,
  DELETE_OF_CUSTOMER,
  EXPORT,
  FIND,
  GIVE_BACK,
  INSERT,
  type OneTimeCodeRow,
  REDEEM,
  REPLACE,
} from './one-time-code.statements.js';

const PURPOSE = 'one-time codes';
const DEFAULT_DIGIT_COUNT = 6;
const DEFAULT_GUESS_COUNT = 5;
const MAX_CONTENT_BYTES = 4_096;
/** A row that is purged between two statements is inserted again. */
const MAX_ROUNDS = 3;

/** What a code is issued for. */
export interface IssueOptions {
  /** The client that redeems the code, if the grant does not declare `anyClient`. */
  clientId: string;
  organizationId: string;
  /**
   * Whom a short code is sent to, such as a phone, in one spelling. The code replaces the earlier one of this recipient,
   * client and organization, and keeps the number of guesses. Without a recipient the code is a random text.
   */
  recipient?: string;
  /** The length of a short code; by default 6. */
  digits?: number;
  /** Given back by `redeem`: at most 4 KB as JSON. It is stored as it is, so it must not be secret. */
  content?: object;
  /** With `endsWith: 'caller'`: whose bearer token creates the code. */
  caller?: Principal;
  /** The customer that the code leads to, as `CustomerService` returned it. By default, a caller that is a customer. */
  customer?: { entityId: string; generation: number };
}

/** A code, which only the caller or the recipient may learn. */
export interface IssuedCode {
  code: string;
  /** The lifetime in seconds. */
  expiresIn: number;
}

/** What a redeemed code gives. */
export class RedeemedCode<Content> {
  readonly content: Content;
  readonly organizationId: string;
  /** The `proof` of the result, if the code was issued for the customer of the first redemption. */
  readonly proof?: string;

  /** @internal */
  constructor(private readonly row: OneTimeCodeRow) {
    this.content = JSON.parse(row.content);
    this.organizationId = row.organization_id;
    if (row.proof !== null) this.proof = row.proof;
  }

  /** The result of the grant for a code that was issued for a customer. @throws Error if it was not */
  get customer(): GrantResult {
    const { entity_id: entityId, organization_id: organizationId, generation, proof, grant_type } = this.row;
    if (entityId === null) throw new Error(`${grant_type}: the code was issued without a customer`);
    return {
      ...{ entityId, organizationId },
      ...(generation !== null && { generation: Number(generation) }),
      ...(proof !== null && { proof }),
    };
  }
}

/**
 * Codes that a route issues and a grant redeems once. `@GrantType` declares their lifetime, client binding, guesses and what
 * ends them. The service hashes, deletes, exports and erases them.
 */
@Injectable()
export class OneTimeCodes implements CustomerDataParticipant {
  /** @internal */
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly keys: SigningKeys,
  ) {}

  /**
   * Issues a code in a route.
   *
   * @param grant the class that redeems it
   * @throws OAuthError as `proof()` of the caller does; 503 if the row is purged in between again and again
   */
  async issue(grant: Type, options: IssueOptions): Promise<IssuedCode> {
    const declared = declarationOf(grant);
    const { lifetime } = declared;
    const { recipient, digits = DEFAULT_DIGIT_COUNT } = options;
    const code = recipient === undefined ? randomSecret('base64url') : randomDigits(digits);
    const id = this.idOf(declared, options, code);
    const hash = recipient === undefined ? id : this.shortHashOf(id, code);
    const now = this.clock.now();
    const end = new Date(now + lifetime * 1000);
    const [entityId, generation, proof] = await endingOf(declared, options);
    const { clientId, organizationId } = options;
    const content = contentOf(declared, options);
    const owner = [declared.name, clientId, organizationId, entityId, generation, proof, content] as const;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const inserted = await this.database.execute(INSERT, [id, hash, ...owner, 0, end, end]);
      if (inserted > 0) return { code, expiresIn: lifetime };
      const values = [...owner, new Date(now), new Date(now), end, hash, end] as const;
      if ((await this.database.execute(REPLACE, [...values, id])) > 0) return { code, expiresIn: lifetime };
    }
    throw OAuthError.unavailable();
  }

  /**
   * Redeems a code in the grant, before it creates anything. The endpoint makes the code usable again if the response is 429
   * or 503.
   *
   * @param recipient as for `issue`
   * @throws OAuthError `invalid_grant` if the code is wrong, expired, redeemed or for another client or organization, or was
   * guessed too often
   */
  async redeem<Content = unknown>(
    request: AnyGrantRequest,
    code: string,
    recipient?: string,
  ): Promise<RedeemedCode<Content>> {
    const { declared, client, organization } = request;
    const { clientId } = client;
    const id = this.idOf(declared, { clientId, organizationId: organization?.id, recipient }, code);
    const now = new Date(this.clock.now());
    if (recipient !== undefined) await this.countGuess(id, declared.guesses ?? DEFAULT_GUESS_COUNT, now);
    const [row] = await this.database.select(FIND, [id]);
    const hash = recipient === undefined ? id : this.shortHashOf(id, code);
    const isRight = row !== undefined && equalInConstantTime(row.code_hash, hash);
    if (!isRight || !mayRedeem(row, request)) throw OAuthError.invalidGrant('code: unknown');
    if ((await this.database.execute(REDEEM, [now, id, hash, now])) === 0)
      throw OAuthError.invalidGrant('code: redeemed before, replaced or expired');
    request.counted.push({ giveBack: () => this.database.execute(GIVE_BACK, [id, hash, now]) });
    return new RedeemedCode<Content>(row);
  }

  onErase = async (entityId: string): Promise<void> =>
    void (await this.database.execute(DELETE_OF_CUSTOMER, [entityId]));
  exportRows = async (entityId: string): Promise<ExportedRows> => {
    const rows = await this.database.select(EXPORT, [entityId]);
    return rows.length === 0 ? {} : { one_time_code: rows };
  };

  /** The guess counts before its value is compared, so that parallel guesses are not free. */
  private async countGuess(id: string, limit: number, now: Date): Promise<void> {
    if ((await this.database.execute(COUNT_GUESS, [id, limit, now])) === 0)
      throw OAuthError.invalidGrant('code: none for this recipient, or guessed too often');
  }

  private idOf(
    { name, anyClient }: GrantMetadata | AnyGrantRequest['declared'],
    {
      clientId,
      organizationId,
      recipient,
    }: { clientId: string; organizationId?: string | undefined; recipient?: string | undefined },
    code: string,
  ): string {
    if (recipient === undefined) return sha256(JSON.stringify([name, code]));
    if (organizationId === undefined) throw new Error(`${name}: the body must require organization_id`);
    const names = [name, organizationId, anyClient ? '' : clientId, recipient];
    return derivedSecret(this.keys.derivedSecret(PURPOSE), JSON.stringify(names));
  }

  /** With a key, because a short code could be found from its hash. After a key rotation, the person needs a new code. */
  private shortHashOf(id: string, code: string): string {
    return derivedSecret(this.keys.derivedSecret(PURPOSE), JSON.stringify([id, code]));
  }
}

function declarationOf(grant: Type): GrantMetadata & { lifetime: number } {
  const declared = Reflect.getMetadata(GrantDecorator.KEY, grant) as GrantMetadata | undefined;
  const { lifetime } = declared ?? {};
  if (declared && lifetime !== undefined) return { ...declared, lifetime };
  throw new Error(`${grant.name}: OneTimeCodes needs a class with \`lifetime\` in @GrantType`);
}

function contentOf({ name }: GrantMetadata, { content = {} }: IssueOptions): string {
  const text = JSON.stringify(content);
  if (Buffer.byteLength(text) <= MAX_CONTENT_BYTES) return text;
  throw new Error(`${name}: the content of a code has more than ${MAX_CONTENT_BYTES} bytes`);
}

/** The customer, its generation and the proof of a new code, as `endsWith` of the grant requires. */
async function endingOf(
  { name, endsWith }: GrantMetadata,
  { caller, customer }: IssueOptions,
): Promise<[entityId: string | null, generation: number | null, proof: string | null]> {
  const entityId = customer?.entityId ?? (caller?.kind === 'customer' ? caller.entityId : null);
  if (endsWith === 'caller') {
    if (!caller) throw new Error(`${name}: declares endsWith 'caller', so OneTimeCodes.issue needs a caller`);
    if (caller.kind === 'agent') return [entityId, null, await caller.proof(customer)];
    if (entityId !== caller.entityId) throw new Error(`${name}: the code of a customer leads to another customer`);
    return [entityId, null, await caller.proof()];
  }
  if (endsWith === 'sessions') {
    if (!customer) throw new Error(`${name}: declares endsWith 'sessions', so OneTimeCodes.issue needs a customer`);
    return [entityId, customer.generation, null];
  }
  return [entityId, null, null];
}

function mayRedeem(row: OneTimeCodeRow, { declared, client, organization }: AnyGrantRequest): boolean {
  const isOfClient = declared.anyClient || row.client_id === client.clientId;
  return isOfClient && (organization === undefined || row.organization_id === organization.id);
}
