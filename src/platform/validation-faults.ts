import type { ValidationError } from 'class-validator';

export const UNKNOWN_FIELD = 'unknown field';

/** A path and a rule for each fault that class-validator found, however deep; never a value. */
export function faultsOf(errors: ValidationError[], above = ''): string[] {
  return errors.flatMap(({ property, constraints = {}, children = [] }) => {
    const path = /^\d+$/.test(property) ? `${above}[${property}]` : above ? `${above}.${property}` : property;
    const own = Object.entries(constraints).map(([kind, rule]) =>
      kind === 'whitelistValidation' ? `${path}: ${UNKNOWN_FIELD}` : `${path}: ${rule.replace(`${property} `, '')}`,
    );
    return [...own, ...faultsOf(children, path)];
  });
}
