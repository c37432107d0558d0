import type { Type } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import { GrantBody, OAuthError, randomSecret, sha256, writeStatement } from 'customer-authorization-service/grant';
import { type Columns, CreateTables } from '../../../../../src/migrations/schema.js';
import type { GrantKit } from '../../../src/grant-kit.js';
import { grantOf } from '../grant-of.js';

class AddressBody extends GrantBody {
  @IsString()
  override organization_id!: string;

  @Matches(/^[\w.]{1,40}@example\.com$/)
  email!: string;

  @Matches(/^[\w-]{43}$/)
  code!: string;
}

class Addresses1795800000000 extends CreateTables {
  protected readonly tables = (its: Columns) => [{ name: 'kit_address', columns: [its.key('address', 64)] }];
}

const STORE = writeStatement<[hash: string]>(
  ({ insertIgnore }) => `${insertIgnore} INTO kit_address (address) VALUES (?)`,
);

/** A code proves an address, which has one customer. Codes and customers are in memory, for all processes. */
export function addressGrant(mistake?: string): { grant: Type } & GrantKit & { modules: Type[] } {
  const codes = new Map<string, string>();
  const entityIds = new Map<string, string>();
  const proofOf = (email: string) => {
    const code = randomSecret('base64url');
    codes.set(code, email);
    return { email, code };
  };

  return {
    ...grantOf<AddressBody>('kit_address', { body: AddressBody }, async ({ body }, customers, { database }) => {
      const { organization_id: organizationId, email, code } = body;
      if (codes.get(code) !== email) throw OAuthError.invalidGrant('wrong code');
      if (mistake === 'stores a hash of the address alone') await database.execute(STORE, [sha256(email)]);
      const known = entityIds.get(email);
      const customer = known && (await customers.find(known, organizationId));
      if (known && !customer && mistake === 'keeps the id of an erased customer')
        throw OAuthError.invalidGrant('erased');
      if (customer && mistake !== 'creates a customer for each proof') return customer;
      const created = await customers.create(organizationId);
      entityIds.set(email, created.entityId);
      return created;
    }),
    migrations: [Addresses1795800000000],
    valid: () => proofOf(`person.${10_000 + codes.size}@example.com`),
    again: ({ email }) => proofOf(`${email}`),
    endsWithCaller: false,
    endsWithSessions: false,
  };
}
