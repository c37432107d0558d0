import { applyDecorators, type Type } from '@nestjs/common';
import {
  getMetadataStorage,
  IsIn,
  IsInt,
  IsString,
  Matches,
  ValidateIf,
  type ValidationError,
  validateSync,
} from 'class-validator';
import { ApiProperty } from '../platform/http/api-route.js';
import { isWellFormed, WELL_FORMED_RULE } from '../platform/text-forms.js';
import { UUID } from '../platform/uuid.js';
import { declaredProperties, isValid, rule } from '../platform/validation.js';
import { withoutName } from '../platform/validation-violations.js';
import { OAuthError } from './oauth-error.js';

/** Marks an optional parameter. A value that is present must be valid; `null` and the empty string count as present. */
export const Optional = (): PropertyDecorator => ValidateIf((_body, value) => value !== undefined);

// Each decorator sets the rule of a field, and its description in the OpenAPI document.
export const Text = (description: string, example?: unknown) =>
  applyDecorators(IsString(), ApiProperty(description, example));

export const OptionalText = (description: string, example?: unknown) =>
  applyDecorators(Optional(), Text(description, example));

export const Texts = (description: string, example?: unknown) =>
  applyDecorators(IsString({ each: true }), ApiProperty(description, example));

/** One of several texts, by default the first one in the example. */
export const OneOf = (values: readonly string[], description: string, example: unknown = values[0]) =>
  applyDecorators(IsIn(values), ApiProperty(description, example));

export const Integer = (description: string, example?: unknown) =>
  applyDecorators(IsInt(), ApiProperty(description, example));

export const OptionalInteger = (description: string, example?: unknown) =>
  applyDecorators(Optional(), Integer(description, example));

export const UUID_RULE = 'must be a UUID in lower case';

export const IsUuid = () => Matches(UUID, { message: UUID_RULE });

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

export const MAX_ID_CHARACTERS = 255;
export const IS_ID_TEXT = 'isIdText';

/**
 * Whether a value is an id that another system may have chosen: 1 to 255 UTF-16 units without control characters.
 *
 * Lone surrogates are rejected: UTF-8 encodes all of them as the same character, so that two ids could be one.
 */
export function isIdText(value: unknown): value is string {
  if (typeof value !== 'string' || value.length === 0 || value.length > MAX_ID_CHARACTERS) return false;
  return /^[^\p{Cc}\p{Cs}]*$/u.test(value);
}

export const IsIdText = () =>
  rule(
    IS_ID_TEXT,
    isIdText,
    `must be 1 to ${MAX_ID_CHARACTERS} characters, without control characters and lone surrogates`,
  );
