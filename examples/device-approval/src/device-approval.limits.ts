import type { LimitDeclarations } from 'customer-authorization-service/grant';

/** The limits of the routes, as COUNT/SECONDS. The operator can change them in RATE_LIMIT. */
export const DEVICE_APPROVAL_LIMITS = {
  /** Requests for codes, for each network. */
  device_approval_start: '20/60',
  /** User codes that a customer sends. */
  device_approval_guess: '10/600',
} as const satisfies LimitDeclarations;
