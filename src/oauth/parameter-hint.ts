import type { Type } from '@nestjs/common';
import { getMetadataStorage, type ValidationError } from 'class-validator';
import { withoutName } from '../platform/validation-violations.js';

interface JsonType {
  name: string;
  admits(value: unknown): boolean;
  /** The rules of class-validator that refuse every value of another type. */
  rules: string[];
}

/** In this order: a property that has rules of two types is of the first. */
const TYPES: JsonType[] = [
  {
    name: 'an array',
    admits: Array.isArray,
    rules: ['isArray', 'arrayNotEmpty', 'arrayMinSize', 'arrayMaxSize', 'arrayUnique'],
  },
  {
    name: 'a string',
    admits: (value) => typeof value === 'string',
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
  { name: 'an integer', admits: (value) => typeof value === 'number', rules: ['isInt'] },
  { name: 'a number', admits: (value) => typeof value === 'number', rules: ['isNumber', 'min', 'max'] },
  { name: 'a boolean', admits: (value) => typeof value === 'boolean', rules: ['isBoolean'] },
  {
    name: 'an object',
    admits: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    rules: ['isObject', 'nestedValidation'],
  },
];
const [ARRAY, STRING] = TYPES;

/** The hint for a parameter that breaks its rules: it is missing, of the wrong type, or breaks another rule. */
export function hintOf(bodyClass: Type<object>, { property, value, constraints }: ValidationError): string {
  if (value === undefined) return `${property}: required`;
  const type = typeOf(bodyClass, property);
  if (type && !type.admits(value)) return `${property}: must be ${type.name}`;
  return `${property}: ${withoutName(property, Object.values(constraints ?? {})[0] ?? 'is malformed')}`;
}

/** The type that the rules of a parameter ask for; `undefined` if they do not tell. */
function typeOf(bodyClass: Type<object>, property: string): JsonType | undefined {
  const rules = getMetadataStorage()
    .getTargetValidationMetadatas(bodyClass, '', false, false)
    .filter(({ propertyName }) => propertyName === property);
  if (rules.some(({ each }) => each)) return ARRAY;
  if (rules.some(isListOfStrings)) return STRING;
  const names = rules.map(({ name, type }) => name ?? type);
  return TYPES.find((type) => type.rules.some((rule) => names.includes(rule)));
}

/** `@IsIn` with strings alone. */
function isListOfStrings({ name, constraints }: { name?: string; constraints: unknown[] | undefined }): boolean {
  const [values] = constraints ?? [];
  return name === 'isIn' && Array.isArray(values) && values.every((value) => typeof value === 'string');
}
