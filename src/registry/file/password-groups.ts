import { randomBytes } from 'node:crypto';
import { sha256 } from '../../platform/secret.js';
import { slowHash } from '../agent-password.js';

export interface ListedPassword {
  key: string;
  password: string;
  storedHash: string;
}

/** The salt is in hexadecimal. */
export interface PasswordGroups {
  salt: string;
  hashes: string[];
}

/** With 1,000 agents and one new password, 32 groups need the fewest slow hashes: one per group and per member. */
const GROUP_COUNT = 32;
const SALT_BYTES = 16;
const EMPTY_GROUP = '';

/** The keys of passwords that match, because the hash of their group has not changed: one slow hash for each group. */
export async function unchangedPasswords(
  passwords: ListedPassword[],
  known: PasswordGroups | null,
): Promise<ReadonlySet<string>> {
  if (!known || areFew(passwords)) return new Set();
  const groups = groupsOf(passwords);
  const hashes = await Promise.all(groups.map((group) => hashOf(group, known.salt)));
  return new Set(
    groups.flatMap((group, index) => (hashes[index] === known.hashes[index] ? group : [])).map(({ key }) => key),
  );
}

/** `null` if the passwords are few. `unchanged` are the keys of `unchangedPasswords`. */
export async function passwordGroups(
  passwords: ListedPassword[],
  known: PasswordGroups | null,
  unchanged: ReadonlySet<string>,
): Promise<PasswordGroups | null> {
  if (areFew(passwords)) return null;
  const salt = known?.salt ?? randomBytes(SALT_BYTES).toString('hex');
  const hashes = groupsOf(passwords).map((group, index) => {
    const isUnchanged = group.length > 0 && group.every(({ key }) => unchanged.has(key));
    return isUnchanged && known ? (known.hashes[index] as string) : hashOf(group, salt);
  });
  return { salt, hashes: await Promise.all(hashes) };
}

/** Comparing few passwords one by one takes fewer slow hashes than their groups. */
function areFew(passwords: ListedPassword[]): boolean {
  return passwords.length <= GROUP_COUNT;
}

function groupsOf(passwords: ListedPassword[]): ListedPassword[][] {
  const groups = Array.from({ length: GROUP_COUNT }, (): ListedPassword[] => []);
  for (const each of passwords) {
    groups[Number.parseInt(sha256(each.key).slice(0, 8), 16) % GROUP_COUNT]?.push(each);
  }
  return groups;
}

/** The hash also covers the stored hashes, so that a password that was stored otherwise is compared again. */
async function hashOf(group: ListedPassword[], salt: string): Promise<string> {
  if (group.length === 0) return EMPTY_GROUP;
  const texts = group.map(({ key, password, storedHash }) => JSON.stringify([key, password, storedHash])).sort();
  return slowHash(JSON.stringify(texts), Buffer.from(salt, 'hex'));
}
