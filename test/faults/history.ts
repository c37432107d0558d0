/** What one caller asked and got, in the order in which it knows it. Times are milliseconds of one clock. */
export interface Call {
  kind: 'new' | 'return' | 'transfer' | 'exchange' | 'info' | 'end';
  begun: number;
  ended: number;
  /** `undefined` where no answer came: the process died, or the connection. What was asked may have been done. */
  status: number | undefined;
  /** The browser, code or token it was about, where it is about one. */
  browser?: string;
  code?: string;
  token?: string;
  /** The customer that was answered, or, of a transfer, that was handed on. */
  entityId?: string;
}

export interface Findings {
  requests: number;
  /** By status; `none` where no answer came. */
  statuses: Record<string, number>;
  /** Milliseconds that the longest answer took. */
  longest: number;
  /** Sentences; none where every promise was kept. */
  violations: string[];
}

/** Milliseconds that a caller may be kept waiting. */
const LONGEST_WAIT = 3_000;
const ALLOWED = new Set([200, 400, 401, 503]);

/**
 * Holds a history against what the service promises, whatever dies or hangs: a code gives one token, a customer that got
 * a 200 stays who it is, a token that was ended stays ended, nobody waits longer than 3 s, and nothing is answered but what
 * was asked for, a refusal, or 503. Pure: the same history, the same findings.
 */
export function checkHistory(calls: Call[]): Findings {
  const answered = calls.filter(({ status }) => status === 200);
  return {
    requests: calls.length,
    statuses: countBy(calls.map(({ status }) => String(status ?? 'none'))),
    longest: calls.reduce((longest, { begun, ended }) => Math.max(longest, ended - begun), 0),
    violations: [
      ...calls.flatMap(waited),
      ...calls.flatMap(unexpected),
      ...codesRedeemedTwice(answered),
      ...customersChanged(answered),
      ...customersExchanged(answered),
      ...tokensRisen(answered),
      ...calls.flatMap(lostCustomer),
    ],
  };
}

function waited({ kind, begun, ended }: Call): string[] {
  return ended - begun > LONGEST_WAIT ? [`${kind}: waited ${Math.round(ended - begun)} ms`] : [];
}

function unexpected({ kind, status }: Call): string[] {
  return status === undefined || ALLOWED.has(status) ? [] : [`${kind}: answered ${status}`];
}

/** RFC 6749 section 4.1.2: a code is used once. */
function codesRedeemedTwice(answered: Call[]): string[] {
  const redeemed = countBy(answered.filter(({ kind }) => kind === 'exchange').map(({ code = '' }) => code));
  return Object.entries(redeemed).flatMap(([code, times]) =>
    times > 1 ? [`exchange: ${code} gave ${times} tokens`] : [],
  );
}

/** One browser is one customer, from the first 200 on. */
function customersChanged(answered: Call[]): string[] {
  const customers = new Map<string, string>();
  return answered.flatMap(({ kind, browser, entityId }) => {
    if ((kind !== 'new' && kind !== 'return') || browser === undefined || entityId === undefined) return [];
    const known = customers.get(browser) ?? entityId;
    customers.set(browser, known);
    return known === entityId ? [] : [`${kind}: ${browser} was ${known} and is ${entityId}`];
  });
}

/** A code gives a token of the customer it was made for. */
function customersExchanged(answered: Call[]): string[] {
  const handedOn = new Map(
    answered.flatMap(({ kind, code, entityId }) => (kind === 'transfer' ? [[code, entityId]] : [])),
  );
  return answered.flatMap(({ kind, code, entityId }) =>
    kind === 'exchange' && handedOn.get(code) !== entityId ? [`exchange: ${code} gave ${entityId}, somebody else`] : [],
  );
}

/** A token whose end was answered is not good in a request that begins later. */
function tokensRisen(answered: Call[]): string[] {
  const ends = new Map(answered.flatMap(({ kind, token, ended }) => (kind === 'end' ? [[token, ended] as const] : [])));
  return answered.flatMap(({ kind, token, begun }) =>
    kind === 'info' && begun > (ends.get(token) ?? Infinity) ? [`info: ${token} was ended before`] : [],
  );
}

/** A browser that was known is never refused. */
function lostCustomer({ kind, status, browser }: Call): string[] {
  return kind === 'return' && (status === 400 || status === 401) ? [`return: ${browser} got ${status}`] : [];
}

function countBy(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
