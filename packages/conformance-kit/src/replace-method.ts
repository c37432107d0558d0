// biome-ignore lint/suspicious/noExplicitAny: each method has parameters of its own
export type Method = (...parameters: any[]) => unknown;

/** Replaces a method of an object. Returns a function that restores it. */
export function replaceMethod(target: object, name: string, wrap: (original: Method) => Method): () => void {
  const own = Object.getOwnPropertyDescriptor(target, name);
  const replacement = wrap((Reflect.get(target, name) as Method).bind(target));
  Reflect.set(target, name, replacement);
  return () => {
    // other code may have replaced the method since then, and must find its own replacement
    if (Reflect.get(target, name) !== replacement) return;
    if (own) Object.defineProperty(target, name, own);
    else Reflect.deleteProperty(target, name);
  };
}

/** Does work, and restores replaced methods after it. */
export async function thenRestore<Result>(restores: (() => void)[], work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } finally {
    for (const restore of restores.reverse()) restore();
  }
}
