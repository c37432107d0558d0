import type { Type } from '@nestjs/common';
import { getMetadataStorage, type ValidationError } from 'class-validator';
import { withoutName } from '../platform/validation-violations.js';

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
    rules: [
      ...['isString', 'matches', 'isLength', 'minLength', 'maxLength', 'isUuid', 'isUrl', 'isEmail', 'isJwt'],
      ...[
        'isIso8601',
        'isDateString',
        'isHexadecimal',
        'isBase64',
        'isNumberString',
        'isBooleanString',
        'isPhoneNumber',
      ],
    ],
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

/** The hint for an invalid parameter: it is missing, has the wrong type, or breaks another rule. */
export function hintOf(bodyClass: Type<object>, { property, value, constraints }: ValidationError): string {
  if (value === undefined) return `${property}: required`;
  const type = typeOf(bodyClass, property);
  if (type && !type.accepts(value)) return `${property}: must be ${type.name}`;
  return `${property}: ${withoutName(property, Object.values(constraints ?? {})[0] ?? 'is malformed')}`;
}

/** The type that the rules of a parameter require; `undefined` if the rules do not determine one. */
function typeOf(bodyClass: Type<object>, property: string): JsonType | undefined {
  const rules = getMetadataStorage()
    .getTargetValidationMetadatas(bodyClass, '', false, false)
    .filter(({ propertyName }) => propertyName === property);
  if (rules.some(({ each }) => each)) return ARRAY;
  if (rules.some(isListOfStrings)) return STRING;
  const names = rules.map(({ name, type }) => name ?? type);
  return TYPES.find((type) => type.rules.some((rule) => names.includes(rule)));
}

/** Whether a rule is `@IsIn` with strings only. */
function isListOfStrings({ name, constraints }: { name?: string; constraints: unknown[] | undefined }): boolean {
  const [values] = constraints ?? [];
  return name === 'isIn' && Array.isArray(values) && values.every((value) => typeof value === 'string');
}
