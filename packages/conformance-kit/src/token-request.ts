/** The parameters of a request, by their names. */
export type Parameters = Record<string, unknown>;

/** How a request differs from a default request. */
export interface SendOptions {
  /** `/v2/customer/token` if omitted. */
  path?: string;
  /** The URL of another process of the service. */
  url?: string;
  /** The organization in the path. */
  organizationId?: string;
  /** Headers that replace those of the caller. `undefined` removes a header. */
  headers?: Record<string, string | undefined>;
}

/** The expected error response. Omitted fields may have any value that the protocol admits. */
export interface ExpectedError {
  status?: number;
  error?: string | string[];
  hint?: RegExp;
}
