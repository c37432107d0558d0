const NAMES = ['__proto__', 'constructor', 'prototype'];

/** Fields, however deep, that the reader of classes would take for something else; none is a field of an entry. */
export function namesOfPrototypes(value: unknown, above = ''): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const path = Array.isArray(value) ? `${above}[${name}]` : above ? `${above}.${name}` : name;
    return NAMES.includes(name) ? [`${path}: unknown field`] : namesOfPrototypes(inner, path);
  });
}
