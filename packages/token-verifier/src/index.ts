export type { AccessTokenClaims, Actor, VerifiedClaims } from './claims.js';
export { type TokenErrorCode, TokenVerifierError } from './errors.js';
export type { FeedProblem } from './feed-problem.js';
export type { RevocationOptions, TokenVerifierOptions } from './options.js';
export { createTokenVerifier, type TokenVerifier, type VerifierState } from './token-verifier.js';
