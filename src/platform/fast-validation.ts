import type { Type } from '@nestjs/common';
import { getMetadataStorage, type ValidationArguments, ValidationTypes } from 'class-validator';

/** Whether a value keeps a rule. */
type Check = (object: object, value: unknown) => boolean;

interface PropertyRules {
  name: string;
  /** When the rules are asked for at all. */
  conditions: Check[];
  rules: Check[];
}

const known = new Map<Type<object>, PropertyRules[]>();

/**
 * Whether an object is known to keep every rule of its class. `false` says that it does not, or that class-validator must be
 * asked, which also tells what is wrong. It collects a class' rules anew each time, among those of all classes, which
 * costs a request 10 µs and 10 KB (docs/performance.md); here they are collected once.
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
  let properties = known.get(type);
  if (properties) return properties;
  const storage = getMetadataStorage();
  const metadata = storage.getTargetValidationMetadatas(type, '', false, false);
  properties = Object.entries(storage.groupByPropertyName(metadata)).map(([name, all]) => {
    const conditions = all.filter((each) => each.type === ValidationTypes.CONDITIONAL_VALIDATION);
    const rules = all.filter((each) => !conditions.includes(each));
    return { name, conditions: conditions.map(({ constraints }) => constraints[0]), rules: rules.flatMap(checksOf) };
  });
  known.set(type, properties);
  return properties;
}

type Rule = ReturnType<ReturnType<typeof getMetadataStorage>['getTargetValidationMetadatas']>[number] & {
  validateIf?: unknown;
};

/** The checks of a rule of a value by itself; of any other, one that leaves it to class-validator. */
function checksOf(rule: Rule): Check[] {
  const { type, each, validateIf, constraintCls, constraints, propertyName: property } = rule;
  if (type !== ValidationTypes.CUSTOM_VALIDATION || each || validateIf) return [() => false];
  return getMetadataStorage()
    .getTargetValidatorConstraints(constraintCls)
    .map(({ instance }) => (object, value) => {
      const about: ValidationArguments = { targetName: object.constructor.name, property, object, value, constraints };
      return instance.validate(value, about) === true;
    });
}
