import { ValidateBy } from 'class-validator';

const MIN_TOKEN_CHARACTERS = 32;
const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const MAX_TOKENS = 100;

export interface AdminToken {
  name: string;
  token: string;
}

/** Separated by commas or line breaks. The name ends at the first colon. */
export function parseAdminTokens(text: string): AdminToken[] {
  const entries = text.split(/[,\n]/).map((entry) => entry.trim());
  return entries
    .filter((entry) => entry !== '')
    .map((entry) => {
      const [name = '', token = ''] = entry.split(/:(.*)/s);
      return { name, token };
    });
}

/** Contains no token. */
export function adminTokensViolation(text: unknown): string | undefined {
  const tokens = typeof text === 'string' ? parseAdminTokens(text) : [];
  if (tokens.length === 0 || tokens.length > MAX_TOKENS)
    return `must be 1 to ${MAX_TOKENS} entries of the form name:token`;
  if (!tokens.every(({ name, token }) => NAME.test(name) && token !== ''))
    return 'must be name:token entries, each with a name of 1 to 64 letters, digits or . _ -';
  if (!tokens.every(({ token }) => isToken(token)))
    return `must have tokens of at least ${MIN_TOKEN_CHARACTERS} printable ASCII characters without spaces`;
  if (hasDuplicates(tokens.map(({ name }) => name)))
    return 'must not have a name twice; use two names to rotate a token';
  if (hasDuplicates(tokens.map(({ token }) => token))) return 'must not have a token twice';
  return undefined;
}

export function adminTokenViolation(text: unknown): string | undefined {
  const tokens = typeof text === 'string' ? text.split(',') : [''];
  if (!tokens.every(isToken))
    return `must be one or more tokens of at least ${MIN_TOKEN_CHARACTERS} printable ASCII characters without spaces, separated by commas`;
  return hasDuplicates(tokens) ? 'must not have a token twice' : undefined;
}

/** A header cannot contain other characters. */
const isToken = (token: string) => token.length >= MIN_TOKEN_CHARACTERS && /^[\x21-\x7e]+$/.test(token);

export function hasDuplicates(texts: string[]): boolean {
  return new Set(texts).size < texts.length;
}

const hasNoViolation = (name: string, violationOf: (text: unknown) => string | undefined): PropertyDecorator =>
  ValidateBy({
    name,
    validator: {
      validate: (value) => violationOf(value) === undefined,
      defaultMessage: (validation) => violationOf(validation?.value) ?? '',
    },
  });

export const IsAdminTokens = () => hasNoViolation('isAdminTokens', adminTokensViolation);
export const IsAdminToken = () => hasNoViolation('isAdminToken', adminTokenViolation);
