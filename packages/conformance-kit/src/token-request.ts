export type Parameters = Record<string, unknown>;

/** How a request differs from a default request. */
export interface SendOptions {
  /** `/v2/customer/token` if omitted. */
  path?: string;
  /** The URL of another process of the service. */
  url?: string;
  organizationId?: string;
  /** Headers that replace those of the caller. `undefined` removes a header. */
  headers?: Record<string, string | undefined>;
}

/** Headers without those whose value is `undefined`. */
export function presentHeaders(headers: Record<string, string | undefined>): Record<string, string> {
  const all = Object.entries(headers);
  return Object.fromEntries(all.filter((pair): pair is [string, string] => pair[1] !== undefined));
}

/** How a request differs from a valid one. */
export interface Change extends SendOptions {
  /** Other texts of parameters, in the body, the path or the query. */
  parameters?: Record<string, string>;
  /** Returns another body for the parameters of the valid request: an object for JSON, or a text or bytes unchanged. */
  body?: (own: Parameters) => Parameters | string | Buffer;
}

/** The expected error response. Omitted fields may have any value that the protocol admits. */
export interface ExpectedError {
  /** 400 if omitted. */
  status?: number | number[];
  error?: string | string[];
  hint?: RegExp;
}
