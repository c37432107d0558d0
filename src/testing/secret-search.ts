import type { Type } from '@nestjs/common';
import { schemaOf } from '../openapi/schemas.js';
import { declaredProperties } from '../platform/declared-properties.js';
import { UUID } from '../platform/uuid.js';
import type { GrantBody } from '../token/grant.js';

/** Parameters of every grant. Their values are registered names, not secrets. */
const COMMON_PARAMETERS = new Set(['grant_type', 'client_id', 'organization_id', 'redirect_uri']);
/** A shorter value may occur anywhere by chance. */
const MIN_SECRET_CHARACTERS = 5;
/** A value of this length never occurs by chance, even as part of a longer word. */
const MIN_UNIQUE_CHARACTERS = 16;

/** The parameters that only this grant has. */
export function ownParameters(body: Type<GrantBody>): string[] {
  return declaredProperties(body).filter((name) => !COMMON_PARAMETERS.has(name));
}

/** The secrets of a request: the texts in the grant's own parameters, except ids and fixed words. */
export function secretsIn(body: Type<GrantBody>, parameters: Record<string, unknown>): string[] {
  const { properties } = schemaOf(body);
  const isFixed = (name: string) => ['const', 'enum'].some((word) => word in (properties[name] ?? {}));
  const values = ownParameters(body).flatMap((name) => (isFixed(name) ? [] : textsIn(parameters[name])));
  return values.filter((value) => value.trim().length >= MIN_SECRET_CHARACTERS && !UUID.test(value));
}

/** The secret parts of a token or a header. */
export function secretParts(text: string): string[] {
  return text.split(/[:.;=\s]+/).filter((part) => part.length >= MIN_UNIQUE_CHARACTERS && !UUID.test(part));
}

/** Whether a text contains a secret, plain or encoded. */
export function containsSecret(text: string, secret: string): boolean {
  const forms = [secret, Buffer.from(secret).toString('base64'), encoded(secret), JSON.stringify(secret).slice(1, -1)];
  return forms.some((form) => (form.length < MIN_UNIQUE_CHARACTERS ? hasWord(text, form) : text.includes(form)));
}

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const around = `${text[at - 1] ?? ' '}${text[at + word.length] ?? ' '}`;
    if (!/[\w.-]/.test(around)) return true;
  }
  return false;
}

function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString()); // Buffer replaces lone surrogates, for which encodeURIComponent would throw
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
