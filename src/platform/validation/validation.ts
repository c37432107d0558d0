import { applyDecorators, type Type as Class } from '@nestjs/common';
import { Type } from 'class-transformer';
import {
  getMetadataStorage,
  IsIn,
  IsInt,
  IsString,
  ValidateBy,
  ValidateIf,
  ValidateNested,
  type ValidationArguments,
  ValidationTypes,
} from 'class-validator';
import { ApiProperty } from '../http/api-route.js';

/** A rule for one value. */
export const rule = <Value>(name: string, validate: (value: Value) => boolean, message: string): PropertyDecorator =>
  ValidateBy({ name, validator: { validate, defaultMessage: () => message } });

/** Marks an optional parameter. A value that is present must be valid; `null` and the empty string count as present. */
export const Optional = (): PropertyDecorator => ValidateIf((_body, value) => value !== undefined);

/**
 * Declares a property whose value is an object of a class, or with `each` a list of them. The rules of the class apply
 * to the object, and the OpenAPI document describes its fields.
 */
export function Nested(type: () => Class<object>, { each = false }: { each?: boolean } = {}): PropertyDecorator {
  return applyDecorators(ValidateNested({ each }), Type(type));
}

// Each `Api…` decorator sets the rule of a field, and its description in the OpenAPI document.
export const ApiString = (description: string, example?: unknown) =>
  applyDecorators(IsString(), ApiProperty(description, example));

export const ApiOptionalString = (description: string, example?: unknown) =>
  applyDecorators(Optional(), ApiString(description, example));

export const ApiStringArray = (description: string, example?: unknown) =>
  applyDecorators(IsString({ each: true }), ApiProperty(description, example));

/** One of several texts, by default the first one in the example. */
export const ApiEnum = (values: readonly string[], description: string, example: unknown = values[0]) =>
  applyDecorators(IsIn(values), ApiProperty(description, example));

export const ApiInteger = (description: string, example?: unknown) =>
  applyDecorators(IsInt(), ApiProperty(description, example));

export const ApiOptionalInteger = (description: string, example?: unknown) =>
  applyDecorators(Optional(), ApiInteger(description, example));

/** The properties with a validation rule of a class and of its base classes, in the order of their declaration. */
export function declaredProperties(type: Class<object>): string[] {
  return rulesOf(type).map(({ name }) => name);
}

export const WELL_FORMED_RULE = 'must not have lone surrogates';

/**
 * Whether no text or name in a value, at any depth, has a lone surrogate. UTF-8 encodes each of them as U+FFFD, so that
 * two texts could be stored or hashed as one (RFC 7493 §2.1).
 */
export function isWellFormed(value: unknown): boolean {
  if (typeof value === 'string') return !/\p{Cs}/u.test(value);
  return typeof value !== 'object' || value === null || Object.entries(value).flat().every(isWellFormed);
}

type Check = (object: object, value: unknown) => boolean;

interface PropertyRules {
  name: string;
  /** The rules apply only if all conditions are true, such as that of `@IsOptional`. */
  conditions: Check[];
  rules: Check[];
}

const rulesByType = new Map<Class<object>, PropertyRules[]>();

/**
 * `false` if the object violates a rule, or if only class-validator can check it: the caller then runs class-validator.
 * class-validator looks up the rules in each call, which costs a returning customer more than a tenth of its processor
 * time (docs/performance.md).
 */
export function isValid<Body extends object>(type: Class<Body>, object: Body): boolean {
  const properties = rulesOf(type);
  if (properties.length === 0) return false;
  for (const { name, conditions, rules } of properties) {
    const value = Reflect.get(object, name);
    if (!conditions.every((condition) => condition(object, value))) continue;
    if (!rules.every((rule) => rule(object, value))) return false;
  }
  return true;
}

function rulesOf(type: Class<object>): PropertyRules[] {
  let properties = rulesByType.get(type);
  if (properties) return properties;
  const storage = getMetadataStorage();
  const metadata = storage.getTargetValidationMetadatas(type, '', false, false);
  properties = Object.entries(storage.groupByPropertyName(metadata)).map(([name, all]) => {
    const conditions = all.filter((each) => each.type === ValidationTypes.CONDITIONAL_VALIDATION);
    const rules = all.filter((each) => !conditions.includes(each));
    return { name, conditions: conditions.map(({ constraints }) => constraints[0]), rules: rules.flatMap(checksOf) };
  });
  rulesByType.set(type, properties);
  return properties;
}

type Rule = ReturnType<ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']>[number] & {
  validateIf?: unknown;
};

/** Only a custom rule for a single value can be checked here. Any other fails, so that class-validator decides. */
function checksOf(rule: Rule): Check[] {
  const { type, each, validateIf, constraintCls, constraints, propertyName: property } = rule;
  if (type !== ValidationTypes.CUSTOM_VALIDATION || each || validateIf) return [() => false];
  return getMetadataStorage()
    .getTargetValidatorConstraints(constraintCls)
    .map(({ instance }) => (object, value) => {
      const validationArguments: ValidationArguments = {
        targetName: object.constructor.name,
        property,
        object,
        value,
        constraints,
      };
      return instance.validate(value, validationArguments) === true;
    });
}
