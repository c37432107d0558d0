import type { LimitDeclarations } from '@customer-authorization/service/grant';

/** The limits of the routes, as COUNT/SECONDS. The operator can change them in RATE_LIMIT. */
export const DEVICE_APPROVAL_LIMITS = {
  /** Requests for codes, for each network. */
  device_approval_start: '20/60',
  /** Wrong user codes that a customer sends. */
  device_approval_guess: '10/600',
  /** Wrong user codes from each network, because everyone can become a new customer. */
  device_approval_network_guess: '40/600',
} as const satisfies LimitDeclarations;
