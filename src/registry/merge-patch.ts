/** Applies a JSON merge patch: a value in the patch replaces the old value, and `null` removes it (RFC 7396 §2). */
export function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const fields = isObject(target) ? target : {};
  const names = [...new Set([...Object.keys(fields), ...Object.keys(patch)])];
  // Object.fromEntries defines a field named __proto__ as a field; an assignment would set the prototype
  return Object.fromEntries(
    names.flatMap((name) => {
      if (!Object.hasOwn(patch, name)) return [[name, fields[name]]];
      const targetValue = Object.hasOwn(fields, name) ? fields[name] : undefined;
      return patch[name] === null ? [] : [[name, mergePatched(targetValue, patch[name])]];
    }),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
