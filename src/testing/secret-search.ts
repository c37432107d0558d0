import type { Type } from '@nestjs/common';
import { schemaOf } from '../openapi/schemas.js';
import { declaredProperties } from '../platform/declared-properties.js';
import { UUID } from '../platform/uuid.js';
import type { GrantBody } from '../token/grant.js';

/** Parameters of every grant. Their values are registered names, not secrets. */
const COMMON_PARAMETERS = new Set(['grant_type', 'client_id', 'organization_id', 'redirect_uri']);
/** Characters below which a value may stand anywhere by chance. */
const MIN_SECRET_LENGTH = 5;
/** Characters from which on a value stands nowhere by chance, whatever is around it. */
const MIN_UNIQUE_LENGTH = 16;

/** The parameters that are the grant's own. */
export function ownParameters(body: Type<GrantBody>): string[] {
  return declaredProperties(body).filter((name) => !COMMON_PARAMETERS.has(name));
}

/** What nobody but the grant may learn of a request: the texts in its own parameters, but for ids and fixed words. */
export function secretsIn(body: Type<GrantBody>, sent: Record<string, unknown>): string[] {
  const { properties } = schemaOf(body);
  const isFixed = (name: string) => ['const', 'enum'].some((word) => word in (properties[name] ?? {}));
  const values = ownParameters(body).flatMap((name) => (isFixed(name) ? [] : textsIn(sent[name])));
  return values.filter((value) => value.trim().length >= MIN_SECRET_LENGTH && !UUID.test(value));
}

/** The parts of a token or a header that are a secret. */
export function secretParts(text: string): string[] {
  return text.split(/[:.;=\s]+/).filter((part) => part.length >= MIN_UNIQUE_LENGTH && !UUID.test(part));
}

/** Whether a text tells a secret, as it is or encoded. */
export function containsSecret(text: string, secret: string): boolean {
  const forms = [secret, Buffer.from(secret).toString('base64'), encoded(secret), JSON.stringify(secret).slice(1, -1)];
  return forms.some((form) => (form.length < MIN_UNIQUE_LENGTH ? hasWord(text, form) : text.includes(form)));
}

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const around = `${text[at - 1] ?? ' '}${text[at + word.length] ?? ' '}`;
    if (!/[\w.-]/.test(around)) return true;
  }
  return false;
}

function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString()); // a half of a surrogate pair has no encoding
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
