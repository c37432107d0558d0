import type { Type } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';

const namesByType = new Map<Type<object>, string[]>();

/** The properties with a validation rule of a class and of its base classes, in the order of their declaration. */
export function declaredProperties(type: Type<object>): string[] {
  let names = namesByType.get(type);
  if (!names) {
    const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', true, false);
    names = [...new Set(rules.map((rule) => rule.propertyName))];
    namesByType.set(type, names);
  }
  return names;
}
