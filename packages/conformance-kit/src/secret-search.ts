import { UUID } from '@customer-authorization/service/grant';
import { declaredProperties, schemaOf } from '@customer-authorization/service/testing-host';
import type { Type } from '@nestjs/common';

/** Parameters of every grant. Their values are registered names, not secrets. */
export const COMMON_PARAMETERS = new Set(['grant_type', 'client_id', 'organization_id', 'redirect_uri']);
/** A shorter value may occur anywhere by chance. */
const MIN_SECRET_CHARACTERS = 5;
/** A phone number, or the beginning of an email address. */
export const ADDRESS = /^(\+\d{6,15}$|[^@\s]+@)/;
/** A value of this length never occurs by chance, even as part of a longer word. */
const MIN_UNIQUE_CHARACTERS = 16;

/** The names of the parameters that only this grant or route has. */
export function ownParameters(body: Type<object>): string[] {
  return declaredProperties(body).filter((name) => !COMMON_PARAMETERS.has(name));
}

/** The secrets of a request: the texts in the grant's own parameters, except public ids and fixed words. */
export function secretsIn(
  body: Type<object>,
  parameters: Record<string, unknown>,
  isPublicId: (text: string) => boolean,
): string[] {
  const { properties } = schemaOf(body);
  const isFixed = (name: string) => ['const', 'enum'].some((word) => word in (properties[name] ?? {}));
  const values = ownParameters(body).flatMap((name) => (isFixed(name) ? [] : textsIn(parameters[name])));
  return values.filter((value) => isLongText(value) && !isPublicId(value));
}

/** Whether a text is too long to occur anywhere by chance. */
export const isLongText = (text: string): boolean => text.trim().length >= MIN_SECRET_CHARACTERS;

/** Whether a text of a response can be a secret: no id, no time, and not too short. */
export function isPrivateText(text: string): boolean {
  return isLongText(text) && !UUID.test(text) && Number.isNaN(Date.parse(text));
}

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
    const before = text.slice(Math.max(0, at - 2), at);
    const after = text.slice(at + word.length, at + word.length + 2);
    if (!/(\w|\w[.-])$/.test(before) && !/^(\w|[.-]\w)/.test(after)) return true;
  }
  return false;
}

function encoded(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString()); // Buffer replaces lone surrogates, for which encodeURIComponent would throw
}

/** All texts in a JSON value, except the names of properties. */
export function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}
