import { UNKNOWN_FIELD } from '../../platform/validation-violations.js';

const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype'];

/**
 * The violations of fields, at any depth, whose names class-transformer would resolve on the prototype of a class.
 */
export function prototypeKeyViolations(value: unknown, parentPath = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = Array.isArray(value) ? `${parentPath}[${name}]` : parentPath ? `${parentPath}.${name}` : name;
    return PROTOTYPE_KEYS.includes(name) ? [`${path}: ${UNKNOWN_FIELD}`] : prototypeKeyViolations(inner, path);
  });
}
