import type { Type } from '@nestjs/common';
import { getMetadataStorage, type ValidationError, validateSync } from 'class-validator';
import { declaredProperties, isValid, isWellFormed, WELL_FORMED_RULE } from '../platform/validation/validation.js';
import { withoutName } from '../platform/validation/violations.js';
import { OAuthError } from './oauth-error.js';

/**
 * Reads and validates the parameters that a body class declares. No other name of the caller (such as `__proto__`)
 * reaches an object of the service. An empty string is not a value: a required parameter counts as missing, and an
 * optional parameter is invalid.
 *
 * @throws OAuthError `invalid_request`, whose hint names the first invalid parameter
 */
export function readParameters<Body extends object>(bodyClass: Type<Body>, parameters: Record<string, unknown>): Body {
  const body = new bodyClass();
  let firstEmpty: string | undefined;
  let firstMalformed: string | undefined;
  for (const name of declaredProperties(bodyClass)) {
    if (!Object.hasOwn(parameters, name)) continue;
    if (!isWellFormed(parameters[name])) firstMalformed ??= name;
    if (parameters[name] === '') firstEmpty ??= name;
    else Reflect.set(body, name, parameters[name]);
  }
  if (firstEmpty === undefined && firstMalformed === undefined && isValid(bodyClass, body)) return body;
  const [violation] = validateSync(body, { stopAtFirstError: true });
  if (violation) throw OAuthError.invalidRequest(hintOf(bodyClass, violation));
  if (firstEmpty !== undefined) throw OAuthError.invalidRequest(`${firstEmpty}: must not be empty`);
  if (firstMalformed !== undefined) throw OAuthError.invalidRequest(`${firstMalformed}: ${WELL_FORMED_RULE}`);
  return body;
}

/** Reads a required string before the body class is known, by the rules of `readParameters`. */
export function requiredString(name: string, value: unknown): string {
  if (value === undefined || value === '') throw OAuthError.invalidRequest(`${name}: required`);
  return assertString(name, value);
}

export function optionalString(name: string, value: unknown): string | undefined {
  if (value === '') throw OAuthError.invalidRequest(`${name}: must not be empty`);
  return value === undefined ? undefined : assertString(name, value);
}

function assertString(name: string, value: unknown): string {
  if (typeof value !== 'string') throw OAuthError.invalidRequest(`${name}: must be a string`);
  if (!isWellFormed(value)) throw OAuthError.invalidRequest(`${name}: ${WELL_FORMED_RULE}`);
  return value;
}

interface JsonType {
  name: string;
  accepts(value: unknown): boolean;
  /** The rules of class-validator that reject every value of another type. */
  rules: string[];
}

/** The order matters: a property with rules of two types has the first type. */
const TYPES: JsonType[] = [
  {
    name: 'an array',
    accepts: Array.isArray,
    rules: ['isArray', 'arrayNotEmpty', 'arrayMinSize', 'arrayMaxSize', 'arrayUnique'],
  },
  {
    name: 'a string',
    accepts: (value) => typeof value === 'string',
    rules: (
      'isString matches isLength minLength maxLength isUuid isUrl isEmail isJwt isIso8601 isDateString isHexadecimal ' +
      'isBase64 isNumberString isBooleanString isPhoneNumber'
    ).split(' '),
  },
  { name: 'an integer', accepts: (value) => typeof value === 'number', rules: ['isInt'] },
  { name: 'a number', accepts: (value) => typeof value === 'number', rules: ['isNumber', 'min', 'max'] },
  { name: 'a boolean', accepts: (value) => typeof value === 'boolean', rules: ['isBoolean'] },
  {
    name: 'an object',
    accepts: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    rules: ['isObject', 'nestedValidation'],
  },
];
const [ARRAY, STRING] = TYPES;

export function hintOf(bodyClass: Type<object>, { property, value, constraints }: ValidationError): string {
  if (value === undefined) return `${property}: required`;
  const type = typeOf(bodyClass, property);
  if (type && !type.accepts(value)) return `${property}: must be ${type.name}`;
  return `${property}: ${withoutName(property, Object.values(constraints ?? {})[0] ?? 'is malformed')}`;
}

function typeOf(bodyClass: Type<object>, property: string): JsonType | undefined {
  const rules = getMetadataStorage()
    .getTargetValidationMetadatas(bodyClass, '', false, false)
    .filter(({ propertyName }) => propertyName === property);
  if (rules.some(({ each }) => each)) return ARRAY;
  if (rules.some(isListOfStrings)) return STRING;
  const names = rules.map(({ name, type }) => name ?? type);
  return TYPES.find((type) => type.rules.some((rule) => names.includes(rule)));
}

function isListOfStrings({ name, constraints }: { name?: string; constraints: unknown[] | undefined }): boolean {
  const [values] = constraints ?? [];
  return name === 'isIn' && Array.isArray(values) && values.every((value) => typeof value === 'string');
}
