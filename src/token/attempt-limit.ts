import type { LimitText } from '../platform/configuration/rate-limit-rule.js';

/** A limit of requests that a grant refuses. */
export interface AttemptLimit<Body> {
  /** What is counted together: the caller's network, and parameters of the body by their names. */
  per: readonly [AttemptKey<Body>, ...AttemptKey<Body>[]];
  /** `COUNT/SECONDS`: `5/600` is 5 refused requests in 600 seconds. */
  limit: LimitText;
}

/** `network`, or the name of a parameter of the body. */
export type AttemptKey<Body> = 'network' | (keyof Body & string);

/** A limit of refused requests, whose names of parameters the start compares with the body class. */
export interface DeclaredAttemptLimit {
  per: readonly string[];
  limit: string;
}
