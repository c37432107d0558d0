import { Logger } from '@nestjs/common';
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

/**
 * What a redemption gives in addition to its token. The steps run before the redemption, so that an error leaves the
 * code usable.
 */
export interface RedemptionSteps {
  /**
   * Reads and checks, before the service checks whether the code has ended. So a generation that is read here is not
   * newer than that check.
   */
  prepare?(code: RedeemableCode): Promise<void>;
  /** Whether `store` writes for the code of `prepare`. The service then checks the code once more before `store`. */
  storesRows?(): boolean;
  /** Stores what counts only if this attempt redeems the code. */
  store?(attempt: string): Promise<void>;
  /** Deletes what `store` has stored, because it failed or another attempt has redeemed the code. */
  discard?(): Promise<void>;
}

const logger = new Logger('Redemption');

/** Stores the rows of the steps. After an error no row remains. */
export async function storeRows(steps: RedemptionSteps | undefined, attempt: string): Promise<void> {
  try {
    await steps?.store?.(attempt);
  } catch (error) {
    await discardRows(steps);
    throw error;
  }
}

/** An error must not replace the response to a second use, or the error of `store`. */
export async function discardRows(steps: RedemptionSteps | undefined): Promise<void> {
  try {
    await steps?.discard?.();
  } catch (error) {
    logger.warn(`rows of a failed redemption remain until they expire or are idle: ${(error as Error).message}`);
  }
}
