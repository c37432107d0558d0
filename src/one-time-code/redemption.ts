import type { EntityManager } from 'typeorm';
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
  /** The last day that is noted for a token of the customer; `null` if it needs no note. */
  tokenDay: number | null;
}

/** What a redemption does in addition to its token. If a step throws, the code stays usable. */
export interface RedemptionSteps {
  /** Reads and checks before the redemption. */
  prepare?(code: RedeemableCode): Promise<void>;
  /** Whether `begin` writes for the code of `prepare`, although there is no `store`. */
  mustBegin?(): boolean;
  /** The first statements of the transaction of the redemption. */
  begin?(manager: EntityManager): Promise<void>;
  /** Stores what the redemption gives, in its transaction. It may run again after a rollback. */
  store?(manager: EntityManager, attempt: string): Promise<void>;
}
