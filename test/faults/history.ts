/** A request of a caller and its response. Times are milliseconds of one clock. */
export interface Call {
  kind: 'new' | 'return' | 'transfer' | 'exchange' | 'info' | 'end';
  /** Of the process that got the request. */
  url?: string;
  begun: number;
  ended: number;
  /** `undefined` if the process or the connection ended without a response. The request may have been executed. */
  status: number | undefined;
  /** The browser, code or token of the request, if it has one. */
  browser?: string;
  code?: string;
  token?: string;
  /** The customer in the response, or the customer of a transfer. */
  entityId?: string;
}

export interface Findings {
  requests: number;
  /** The number of requests by response status. `none` counts requests without a response. */
  statuses: Record<string, number>;
  /** The longest response time in milliseconds. */
  longest: number;
  /** One sentence for each violation of the protocol. */
  violations: string[];
}

/** The wait of docs/operations.md. */
const LONGEST_WAIT_MS = 3_000;
/** The additional time for the processes, the database and the callers on a machine with two cores. */
export const TOLERANCE_MS = 1_000;
const ALLOWED = new Set([200, 400, 401, 503]);

/**
 * Checks a history against the guarantees that hold during any fault. A code gives one token. A browser stays the same
 * customer after its first 200. A revoked token stays revoked. No caller waits longer than 3 s, with one second of
 * tolerance. Every response is a success, an error response of the protocol, or 503. The function is pure.
 */
export function checkHistory(calls: Call[]): Findings {
  const successful = calls.filter(({ status }) => status === 200);
  return {
    requests: calls.length,
    statuses: countBy(calls.map(({ status }) => String(status ?? 'none'))),
    longest: calls.reduce((longest, { begun, ended }) => Math.max(longest, ended - begun), 0),
    violations: [
      ...calls.flatMap(waitedTooLong),
      ...calls.flatMap(unexpected),
      ...codesRedeemedTwice(successful),
      ...customersChanged(successful),
      ...codesOfOtherCustomers(successful),
      ...revokedTokensAccepted(successful),
      ...calls.flatMap(lostCustomer),
    ],
  };
}

function waitedTooLong({ kind, begun, ended }: Call): string[] {
  const waitedMs = ended - begun;
  return waitedMs > LONGEST_WAIT_MS + TOLERANCE_MS ? [`${kind}: waited ${Math.round(waitedMs)} ms`] : [];
}

function unexpected({ kind, status }: Call): string[] {
  return status === undefined || ALLOWED.has(status) ? [] : [`${kind}: status ${status}`];
}

/** RFC 6749 §4.1.2: a code is used once. */
function codesRedeemedTwice(successful: Call[]): string[] {
  const redeemed = countBy(successful.filter(({ kind }) => kind === 'exchange').map(({ code = '' }) => code));
  return Object.entries(redeemed).flatMap(([code, times]) =>
    times > 1 ? [`exchange: ${code} gave ${times} tokens`] : [],
  );
}

/** A browser stays the same customer after its first response with status 200. */
function customersChanged(successful: Call[]): string[] {
  const customers = new Map<string, string>();
  return successful.flatMap(({ kind, browser, entityId }) => {
    if ((kind !== 'new' && kind !== 'return') || browser === undefined || entityId === undefined) return [];
    const known = customers.get(browser) ?? entityId;
    customers.set(browser, known);
    return known === entityId ? [] : [`${kind}: ${browser} was ${known} and is ${entityId}`];
  });
}

/** A code gives a token of the customer for which it was created. */
function codesOfOtherCustomers(successful: Call[]): string[] {
  const customerOfCode = new Map(
    successful.flatMap(({ kind, code, entityId }) => (kind === 'transfer' ? [[code, entityId]] : [])),
  );
  return successful.flatMap(({ kind, code, entityId }) =>
    kind === 'exchange' && customerOfCode.get(code) !== entityId
      ? [`exchange: ${code} gave ${entityId}, another customer`]
      : [],
  );
}

/** A token is invalid in every request that starts after the response to its revocation. */
function revokedTokensAccepted(successful: Call[]): string[] {
  const ends = new Map(
    successful.flatMap(({ kind, token, ended }) => (kind === 'end' ? [[token, ended] as const] : [])),
  );
  return successful.flatMap(({ kind, token, begun }) =>
    kind === 'info' && begun > (ends.get(token) ?? Infinity) ? [`info: ${token} was ended before`] : [],
  );
}

/** The cookies of a returning browser are never rejected. */
function lostCustomer({ kind, status, browser }: Call): string[] {
  return kind === 'return' && (status === 400 || status === 401) ? [`return: ${browser} got ${status}`] : [];
}

function countBy(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
