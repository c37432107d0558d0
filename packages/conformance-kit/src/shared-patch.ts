type Method = (...parameters: never[]) => unknown;

/**
 * Replaces a method of a global object while at least one user needs the replacement, and restores it after the last.
 */
export class SharedPatch {
  private users = 0;
  private restore: () => void = () => undefined;

  constructor(
    private readonly target: object,
    private readonly name: string,
    private readonly wrap: (original: Method) => Method,
  ) {}

  /** Returns a function that ends this use. Further calls of the function do nothing. */
  acquire(): () => void {
    if (this.users++ === 0) this.install();
    let isReleased = false;
    return () => {
      if (isReleased) return;
      isReleased = true;
      if (--this.users === 0) this.restore();
    };
  }

  private install(): void {
    const { target, name } = this;
    const own = Object.getOwnPropertyDescriptor(target, name);
    const replacement = this.wrap(Reflect.get(target, name) as Method);
    Reflect.set(target, name, replacement);
    this.restore = () => {
      // other code may have replaced the method since then, and must find its own replacement
      if (Reflect.get(target, name) !== replacement) return;
      if (own) Object.defineProperty(target, name, own);
      else Reflect.deleteProperty(target, name);
    };
  }
}
