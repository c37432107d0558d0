/** A value after a JSON merge patch: a value in the patch replaces the one before, `null` removes it (RFC 7396 section 2). */
export function mergePatched(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const before = isObject(target) ? target : {};
  const names = [...new Set([...Object.keys(before), ...Object.keys(patch)])];
  // entries and not assignments: a field named __proto__ is a field
  return Object.fromEntries(
    names.flatMap((name) => {
      if (!Object.hasOwn(patch, name)) return [[name, before[name]]];
      const own = Object.hasOwn(before, name) ? before[name] : undefined;
      return patch[name] === null ? [] : [[name, mergePatched(own, patch[name])]];
    }),
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
