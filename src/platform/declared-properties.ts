import type { Type } from '@nestjs/common';
import { getMetadataStorage } from 'class-validator';

const known = new Map<Type<object>, string[]>();

/** The names of the properties that a class, or one above it, declares by a validation rule; in their order. */
export function declaredProperties(type: Type<object>): string[] {
  let names = known.get(type);
  if (!names) {
    const rules = getMetadataStorage().getTargetValidationMetadatas(type, '', true, false);
    names = [...new Set(rules.map((rule) => rule.propertyName))];
    known.set(type, names);
  }
  return names;
}
