import type { TokenLineage } from '../access-token/token-lineage.js';

/** A code that matches its proof and is not redeemed yet. */
export interface RedeemableCode {
  /** The customer or agent. */
  subject: string;
  organizationId: string;
  clientId: string;
  lineage: TokenLineage;
  /** Whether the code was created with a `code_challenge`. */
  hasChallenge: boolean;
}

/**
 * What a redemption gives in addition to its token. The steps run before the redemption, so that an error leaves the code usable.
 */
export interface RedemptionSteps {
  /**
   * Reads and checks, before the service checks whether the code has ended. So a generation that is read here is not
   * newer than that check.
   */
  prepare(code: RedeemableCode): Promise<void>;
  /** Stores what counts only if this attempt redeems the code. */
  store(attempt: string): Promise<void>;
  /** Deletes what `store` has stored, because another attempt has redeemed the code. */
  discard(): Promise<void>;
}
