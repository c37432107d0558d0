const WATCHED = [Object, Array, Function, String, Number, Boolean, Promise, Map, Set, RegExp, Error].map(
  (type) => type.prototype as object,
);

/** Notes the prototypes of the language; answers which names have come to them since. */
export function watchPrototypes(): () => string[] {
  const before = WATCHED.map((prototype) => new Set(Reflect.ownKeys(prototype)));
  return () =>
    WATCHED.flatMap((prototype, index) => {
      const added = Reflect.ownKeys(prototype).filter((key) => !before[index]?.has(key));
      return added.map((key) => `${prototype.constructor.name}.prototype.${String(key)}`);
    });
}
