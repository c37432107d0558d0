import type { Request, Response } from 'express';

/** The browser that sent a request, independent of Express. */
export interface Browser {
  /** The `Origin` header, if there is one. The service has checked that it is an origin of the client. */
  readonly origin: string | undefined;
  /** The `Cookie` header, unchanged. */
  readonly cookies: string | undefined;
  /** Adds a `Set-Cookie` header to the response. An error response sets no cookies. */
  setCookie(line: string): void;
}

/** The browser of a request. Express keeps the response in the request. @internal */
export function browserOf({ headers, res }: Request): Browser {
  return {
    origin: headers.origin,
    cookies: headers.cookie,
    setCookie: (line) => (res as Response).appendHeader('Set-Cookie', line),
  };
}
