/** The parameters of a request, by their names. */
export type Parameters = Record<string, unknown>;

/** How a request differs from an ordinary one. */
export interface SendOptions {
  /** The token address when left out. */
  path?: string;
  /** The organization in the path. */
  organizationId?: string;
  /** In place of the caller's; `undefined` takes one away. */
  headers?: Record<string, string | undefined>;
}

/** What a refusal must be; what is left out may be anything that the protocol knows. */
export interface ExpectedError {
  status?: number;
  error?: string | string[];
  hint?: RegExp;
}
