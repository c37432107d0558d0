// Apart from request-pipe.ts, because the declarations of the public surface must not need those of Express.

/** The parameters by which a request names its client and its organization. */
export interface ClientParameters {
  client_id: string;
  organization_id?: string;
}

/** The browser that sent a request, independent of Express. */
export interface Browser {
  /** The `Origin` header, if there is one. The service has checked that it is an origin of the client. */
  readonly origin: string | undefined;
  /** The `Cookie` header, unchanged. */
  readonly cookies: string | undefined;
  /** Adds a `Set-Cookie` header to the response. An error response sets no cookies. */
  setCookie(line: string): void;
}
