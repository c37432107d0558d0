import type { ValidationError } from 'class-validator';

export const UNKNOWN_FIELD = 'unknown field';

/** A path and a rule for each fault that class-validator found, however deep; never a value. */
export function violationsOf(errors: ValidationError[], above = ''): string[] {
  return errors.flatMap(({ property, constraints = {}, children = [] }) => {
    const path = /^\d+$/.test(property) ? `${above}[${property}]` : above ? `${above}.${property}` : property;
    const own = Object.entries(constraints).map(([kind, rule]) =>
      kind === 'whitelistValidation' ? `${path}: ${UNKNOWN_FIELD}` : `${path}: ${withoutName(property, rule)}`,
    );
    return [...own, ...violationsOf(children, path)];
  });
}

/** The message of a rule without the name of the property, with which those of class-validator begin. */
export function withoutName(property: string, message: string): string {
  const beginning = `${property} `;
  return message.startsWith(beginning) ? message.slice(beginning.length) : message;
}
