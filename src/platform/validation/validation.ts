import type { Type } from '@nestjs/common';
import { getMetadataStorage, type ValidationArguments, ValidationTypes } from 'class-validator';

/** The properties with a validation rule of a class and of its base classes, in the order of their declaration. */
export function declaredProperties(type: Type<object>): string[] {
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

const rulesByType = new Map<Type<object>, PropertyRules[]>();

/**
 * `false` if the object violates a rule, or if only class-validator can check it: the caller then runs class-validator.
 * class-validator looks up the rules in each call, which costs a returning customer more than a tenth of its processor
 * time (docs/performance.md).
 */
export function isValid<Body extends object>(type: Type<Body>, object: Body): boolean {
  const properties = rulesOf(type);
  if (properties.length === 0) return false;
  for (const { name, conditions, rules } of properties) {
    const value = Reflect.get(object, name);
    if (!conditions.every((condition) => condition(object, value))) continue;
    if (!rules.every((rule) => rule(object, value))) return false;
  }
  return true;
}

function rulesOf(type: Type<object>): PropertyRules[] {
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
