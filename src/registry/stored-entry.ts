import type { EntityManager, ObjectLiteral } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { Agent } from './agent.entity.js';
import { ClientApplication } from './client-application.entity.js';
import type { Entry, EntryKind } from './entry-kinds.js';

export function lowered(email: unknown): string {
  return String(email).toLowerCase();
}

/** An entry as it is shown: with its key, and whether the file owns it. */
export function shown({ key, field, entryOf }: EntryKind, row: ObjectLiteral): Entry {
  return { ...(field === undefined && { id: row[key] }), ...entryOf(row as never), owned_by_file: row.ownedByFile };
}

/** The row of an entry that the file does not own. @throws OAuthError `not_found`, `conflict` */
export async function owned(manager: EntityManager, { entity, key }: EntryKind, value: string): Promise<ObjectLiteral> {
  const row = await manager.findOneBy(entity, { [key]: value });
  if (row?.[key] !== value) throw OAuthError.notFound();
  if (row?.ownedByFile) throw OAuthError.conflict('the registry file lists it, and owns it');
  return row as ObjectLiteral;
}

/** @throws OAuthError `conflict` */
export async function refuseSecondAgent(manager: EntityManager, { email }: ObjectLiteral, id?: string): Promise<void> {
  const other = await manager.findOneBy(Agent, { email: lowered(email) });
  if (other && other.id !== id) throw OAuthError.conflict('email: of another agent');
}

/** @throws OAuthError `conflict` where something is still of an organization */
export async function refuseNamed(manager: EntityManager, organizationId: string): Promise<void> {
  const isNamed =
    (await manager.existsBy(ClientApplication, { organizationId })) ||
    (await manager.existsBy(Agent, { organizationId }));
  if (isNamed) throw OAuthError.conflict('clients or agents are still of this organization');
}
