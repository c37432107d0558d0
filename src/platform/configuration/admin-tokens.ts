import { ValidateBy } from 'class-validator';

/** The roles of operators (protocol §9.1). */
export const ADMIN_ROLES = ['read', 'registry', 'support', 'all'] as const;

export type AdminRole = (typeof ADMIN_ROLES)[number];

export function isAdminRole(text: unknown): text is AdminRole {
  return (ADMIN_ROLES as readonly unknown[]).includes(text);
}

/** Whether an operator with the role `held` may use a route that needs the role `needed`. */
export function isSufficientRole(held: AdminRole, needed: AdminRole): boolean {
  return held === 'all' || held === needed || (held === 'registry' && needed === 'read');
}

const MIN_TOKEN_CHARACTERS = 32;
const MAX_TOKEN_CHARACTERS = 1_024;
const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const MAX_TOKENS = 100;
/** More than the longest valid text. A process does not read a longer file (protocol §9.1). */
export const MAX_ADMIN_TOKENS_BYTES = 131_072;

const FORM = 'name:role:token';

export interface AdminToken {
  name: string;
  role: AdminRole;
  token: string;
}

/** The entries of a text without a violation, which commas or line breaks separate. A token may contain colons. */
export function parseAdminTokens(text: string): AdminToken[] {
  const entries = text.split(/[,\n]/).map((entry) => entry.trim());
  return entries
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [name = '', role = '', ...token] = entry.split(':');
      return { name, role: role as AdminRole, token: token.join(':') };
    });
}

/** Contains no token, because a malformed entry may have its token in any part. */
export function adminTokensViolation(text: unknown): string | undefined {
  if (typeof text === 'string' && text.length > MAX_ADMIN_TOKENS_BYTES)
    return `must have at most ${MAX_ADMIN_TOKENS_BYTES} bytes`;
  const tokens = typeof text === 'string' ? parseAdminTokens(text) : [];
  if (tokens.length === 0 || tokens.length > MAX_TOKENS)
    return `must be 1 to ${MAX_TOKENS} entries of the form ${FORM}`;
  if (!tokens.every(({ name, token }) => NAME.test(name) && token !== ''))
    return `must be ${FORM} entries, each with a name of 1 to 64 letters, digits or . _ -`;
  if (!tokens.every(({ role }) => isAdminRole(role)))
    return `must have the role ${ADMIN_ROLES.join(', ')} in each entry`;
  if (!tokens.every(({ token }) => isToken(token)))
    return `must have tokens of ${MIN_TOKEN_CHARACTERS} to ${MAX_TOKEN_CHARACTERS} printable ASCII characters without spaces`;
  if (hasDuplicates(tokens.map(({ name }) => name)))
    return 'must not have a name twice; use two names to rotate a token';
  if (hasDuplicates(tokens.map(({ token }) => token))) return 'must not have a token twice';
  return undefined;
}

/** A header cannot contain other characters. */
const isToken = (token: string) =>
  token.length >= MIN_TOKEN_CHARACTERS && token.length <= MAX_TOKEN_CHARACTERS && /^[\x21-\x7e]+$/.test(token);

function hasDuplicates(texts: string[]): boolean {
  return new Set(texts).size < texts.length;
}

export const IsAdminTokens = (): PropertyDecorator =>
  ValidateBy({
    name: 'isAdminTokens',
    validator: {
      validate: (value) => adminTokensViolation(value) === undefined,
      defaultMessage: (validation) => adminTokensViolation(validation?.value) ?? '',
    },
  });
