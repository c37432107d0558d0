const WATCHED = [Object, Array, Function, String, Number, Boolean, Promise, Map, Set, RegExp, Error].map(
  (type) => type.prototype as object,
);

/**
 * Records the properties of the built-in prototypes. The returned function lists the properties that were added since.
 */
export function watchPrototypes(): () => string[] {
  const before = WATCHED.map((prototype) => new Set(Reflect.ownKeys(prototype)));
  return () =>
    WATCHED.flatMap((prototype, index) => {
      const added = Reflect.ownKeys(prototype).filter((key) => !before[index]?.has(key));
      return added.map((key) => `${prototype.constructor.name}.prototype.${String(key)}`);
    });
}
