import type { Agent } from '../agent.entity.js';
import { isPasswordOf } from '../agent-password.js';
import { MIN_PASSWORD_LENGTH } from './entry-rules.js';
import type { RegistryDocument } from './registry-document.js';

/**
 * The paths of agents' passwords that are too short, but are the stored ones. Release 1 accepted passwords of any length, and
 * a file that it applied must stay applicable. The form of the document may be faulty.
 */
export async function unchangedShortPasswords(document: RegistryDocument, stored: Agent[]): Promise<string[]> {
  const byEmail = new Map(stored.map((agent) => [agent.email, agent]));
  const entries: unknown[] = Array.isArray(document.agents) ? document.agents : [];
  const paths = await Promise.all(
    entries.map(async (entry, index) => {
      const { email, password } = (entry ?? {}) as Record<string, unknown>;
      if (typeof email !== 'string' || typeof password !== 'string') return [];
      if ([...password].length >= MIN_PASSWORD_LENGTH) return [];
      const agent = byEmail.get(email.toLowerCase());
      const isUnchanged = agent !== undefined && (await isPasswordOf(agent.passwordHash, password));
      return isUnchanged ? [`agents[${index}].password`] : [];
    }),
  );
  return paths.flat();
}
