import type { ValidationError } from 'class-validator';

export const UNKNOWN_FIELD = 'unknown field';

/** The path and the rule of each violation that class-validator has found, at any depth. They never contain a value. */
export function violationsOf(errors: ValidationError[], parentPath = ''): string[] {
  return errors.flatMap(({ property, constraints = {}, children = [] }) => {
    const path = /^\d+$/.test(property)
      ? `${parentPath}[${property}]`
      : parentPath
        ? `${parentPath}.${property}`
        : property;
    const own = Object.entries(constraints).map(([kind, rule]) =>
      kind === 'whitelistValidation' ? `${path}: ${UNKNOWN_FIELD}` : `${path}: ${withoutName(property, rule)}`,
    );
    return [...own, ...violationsOf(children, path)];
  });
}

export function withoutName(property: string, message: string): string {
  const prefix = `${property} `;
  return message.startsWith(prefix) ? message.slice(prefix.length) : message;
}

const PROTOTYPE_KEYS = ['__proto__', 'constructor', 'prototype'];

/** The fields, at any depth, whose names class-transformer would resolve on a prototype. */
export function prototypeKeyViolations(value: unknown, parentPath = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = Array.isArray(value) ? `${parentPath}[${name}]` : parentPath ? `${parentPath}.${name}` : name;
    return PROTOTYPE_KEYS.includes(name) ? [`${path}: ${UNKNOWN_FIELD}`] : prototypeKeyViolations(inner, path);
  });
}
