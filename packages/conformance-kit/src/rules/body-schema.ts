import type { Type } from '@nestjs/common';
import { declaredProperties, type ObjectSchema } from 'customer-authorization-service/testing-host';
import { isAccepted } from '../guess-values.js';
import { ownParameters } from '../secret-search.js';
import type { Parameters } from '../token-request.js';

/** A body class with its JSON Schema. */
export interface BodySchema {
  schema: ObjectSchema;
  body: Type<object>;
}

/** Parameters that every request needs, independent of the body class. */
const COMMON_PARAMETERS = ['grant_type', 'client_id'];

/** The required parameters that the body class declares. */
export function required({ schema, body }: BodySchema): string[] {
  const names = new Set([...COMMON_PARAMETERS, ...(schema.required ?? [])]);
  return declaredProperties(body).filter((name) => names.has(name));
}

/** The JSON types that the validation rules of a parameter admit. */
export function typesOf({ schema }: BodySchema, name: string): string[] {
  const { type, const: only, enum: words } = (schema.properties[name] ?? {}) as Parameters & { enum?: unknown[] };
  if (type !== undefined) return [type].flat().map((each) => (each === 'integer' ? 'number' : `${each}`));
  if (words) return words.map(typeOf);
  return only === undefined ? [] : [typeOf(only)];
}

/** @throws Error if a request has parameters that the service does not read, or that have no value */
export function assertDeclared(parameters: Parameters, { body }: BodySchema): void {
  const declared = declaredProperties(body);
  const unknown = Object.keys(parameters).filter((name) => !declared.includes(name));
  const solution = 'give the property a rule such as @IsString(), or remove it from `valid`';
  if (unknown.length > 0) throw new Error(`${unknown}: sent by \`valid\`, not declared in ${body.name}; ${solution}`);
  const empty = Object.keys(parameters).filter((name) => parameters[name] === undefined);
  if (empty.length > 0) throw new Error(`${empty}: \`valid\` returns undefined; did a request in \`valid\` fail?`);
}

/** More characters than a column of the database has. */
const HUGE_COUNT = 10_000;

/**
 * The longest text that the rules of a body accept, at most about 10,000 characters. It repeats one character of a valid
 * text, because a pattern may admit any number of characters at one place only, for example before an @.
 */
export function longestText(body: Type<object>, parameters: Parameters, name: string): string {
  const value = `${parameters[name]}`;
  const repeated = (at: number, count: number) =>
    value.slice(0, at) + (value[at] as string).repeat(count) + value.slice(at + 1);
  let longest = value;
  for (let at = 0; at < value.length; at++) {
    let [accepted, refused] = [1, HUGE_COUNT + 1];
    while (refused - accepted > 1) {
      const count = (accepted + refused) >> 1;
      if (isAccepted(body, { ...parameters, [name]: repeated(at, count) })) accepted = count;
      else refused = count;
    }
    const text = repeated(at, accepted);
    if (text.length > longest.length) longest = text;
  }
  return longest;
}

/**
 * @param parameters a valid request
 * @throws Error if the rules of the body accept a text of any length, which a column of the database may reject with 500
 */
export function assertBounded(bodySchema: BodySchema, parameters: Parameters): void {
  const { body } = bodySchema;
  for (const name of textsOf(bodySchema, ownParameters(body)))
    if (typeof parameters[name] === 'string' && longestText(body, parameters, name).length >= HUGE_COUNT)
      throw new Error(
        `${name}: its rules accept ${HUGE_COUNT} characters; give it a @MaxLength(), or a pattern from ^ to $`,
      );
}

export function textsOf(bodySchema: BodySchema, names = declaredProperties(bodySchema.body)): string[] {
  return names.filter((name) => typesOf(bodySchema, name).includes('string'));
}

export function typeOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}
