import { expiringTables } from 'customer-authorization-service/testing-host';
import { DataSource } from 'typeorm';
import type { GrantTestContext, RuleSet } from '../grant-test-context.js';
import { estimatedBits } from '../guess-values.js';
import { createProof, type Proof } from '../proof.js';
import { ADDRESS } from '../secret-search.js';
import { assertInNoTable, assertNoShortHash, storedColumns } from '../stored-cells.js';
import { listedProperties } from './openapi.js';

/** The names of columns with the time at which a row expires. */
const EXPIRY_COLUMN = /^(expires|expiry|expiration|valid_until|valid_to)(_|$)/;

/** The service's own tables with another purge: their rows refer to each other. */
const PURGED_TABLES = ['session', 'agent_session'];

/** Routes do not list a longer text, because it is a handle. */
const MAX_IDENTIFIER_BITS = 64;

/** The rows that the grant stores. */
export const storageRules: RuleSet = (_declared, { singleUse }) => [
  {
    title: 'stores no proof in plain text in any table',
    async check(context) {
      const proofs = [await createProof(context), await createProof(context)];
      await assertNotStored(context, proofs);
      for (const { parameters } of proofs) await context.expectToken(parameters);
      // a proof that was used once is worthless afterwards, but not its address
      if (!singleUse) await assertNotStored(context, proofs);
      const addressesIn = ({ parameters }: Proof) => context.secretsIn(parameters).filter((text) => ADDRESS.test(text));
      await assertNoShortHash(context.environment.service, proofs.flatMap(addressesIn));
    },
  },
  {
    title: 'has @Expires on each table whose rows expire',
    async check({ environment: { service } }) {
      const purged = [...expiringTables(service.application.get(DataSource)), ...PURGED_TABLES];
      const expiring = (await storedColumns(service)).filter(({ column }) => EXPIRY_COLUMN.test(column));
      const forgotten = expiring.filter(({ table, column }) => column !== 'expires_at' || !purged.includes(table));
      if (forgotten.length === 0) return;
      const names = forgotten.map(({ table, column }) => `${table}.${column}`).join(', ');
      throw new Error(`${names}: nothing deletes the rows; name the column expires_at and give its entity @Expires()`);
    },
  },
];

/** @throws Error if a column has a secret of each proof, or a hash of its short value alone */
async function assertNotStored(context: GrantTestContext, proofs: Proof[]): Promise<void> {
  const { kit, environment } = context;
  const identifiers = await identifiersOf(context, proofs);
  const settings = JSON.stringify(kit.settings ?? {});
  const secretsOf = ({ parameters }: Proof) =>
    context
      .secretsIn(parameters)
      .filter((secret) => !settings.includes(secret) && !identifiers.some((name) => parameters[name] === secret));
  await assertInNoTable(environment.service, proofs.map(secretsOf));
  const { guessable } = kit;
  if (guessable)
    await assertNoShortHash(
      environment.service,
      proofs.map(({ parameters }) => `${parameters[guessable.parameter]}`),
    );
}

/** The short parameters that a list shows, and that another parameter, which a caller could guess, protects. */
async function identifiersOf({ kit: { guessable }, ownParameters, environment }: GrantTestContext, proofs: Proof[]) {
  if (!guessable) return [];
  const listed = await listedProperties(environment.service);
  const isShort = (name: string) =>
    proofs.every(({ parameters }) => estimatedBits(`${parameters[name]}`) <= MAX_IDENTIFIER_BITS);
  return ownParameters.filter((name) => name !== guessable.parameter && listed.includes(name) && isShort(name));
}
