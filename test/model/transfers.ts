import { end, remove } from './endings.js';
import { type Model, REFRESH_SECONDS, TOKEN_SECONDS } from './model.js';
import {
  type AgentSession,
  type AgentToken,
  type Client,
  type Customer,
  Rejection,
  type Session,
  type SessionKind,
  type Token,
} from './things.js';

/** Codes, refresh tokens and their bounds (protocol §3.6 to §3.11). */

const CODE_SECONDS = 3_600;
const MAX_CHAINED_TRANSFERS = 8;
const MAX_CODES = 60;
const MAX_TRANSFER_SESSIONS = 200;
const MAX_DEVICES = 20;
const MAX_SIGNED_IN_BROWSERS = 100;
const USED_DAYS = 30;

const invalidGrant = (why: string) => new Rejection(400, 'invalid_grant', why);

/** @param parent the token that makes the transfer token, or the agent's */
export function transfer(model: Model, customer: Customer, parent: Token | AgentToken, client: Client): Session {
  const isOfAgent = !('customer' in parent);
  if (isOfAgent) model.assertReached(parent, customer);
  else model.assertValid(parent);
  const depth = isOfAgent ? 1 : parent.session.depth + 1;
  if (!isOfAgent && parent.session.expiresAt <= model.now) throw invalidGrant(`${parent.session.name} has expired`);
  if (depth > MAX_CHAINED_TRANSFERS) throw invalidGrant(`the chain has ${MAX_CHAINED_TRANSFERS} transfers`);
  assertMayTransfer(model, customer);
  const origin = isOfAgent
    ? { agentToken: parent }
    : { agentToken: parent.session.agentToken, parent: parent.session, parentEpoch: parent.epoch };
  return model.newSession('code', customer, { ...origin, depth, client, expiresAt: model.now + CODE_SECONDS * 1000 });
}

/** @throws Rejection if the code cannot be redeemed. A second use ends the session that the code became */
export function assertRedeemable(model: Model, code: Session | AgentSession, client: Client): void {
  if (code.gone) throw invalidGrant(code.gone);
  if (code.client !== client) throw invalidGrant(`${code.name} is of another client`);
  if (code.kind !== 'code') {
    end(model, code);
    throw invalidGrant(`the code of ${code.name} was redeemed`);
  }
  const why = model.whyNotUsable(code);
  if (why) throw invalidGrant(why);
}

export function redeem(model: Model, code: Session): void {
  Object.assign(code, { kind: 'moved', expiresAt: model.now + TOKEN_SECONDS * 1000 });
}

export function redeemForRefreshToken(model: Model, code: Session | AgentSession): void {
  if ('customer' in code) makeRoom(model, code.customer, ['transferred', 'refresh']);
  code.kind = 'refresh';
  use(model, code);
}

export function refresh(model: Model, session: Session | AgentSession, used: string, client: Client): void {
  const why = session.client === client ? model.whyNotUsable(session) : `${session.name} is of another client`;
  if (why) throw invalidGrant(why);
  const age = session.refreshTokens.length - 1 - session.refreshTokens.indexOf(used);
  if (age > 1) {
    end(model, session);
    throw invalidGrant(`the successor of this token of ${session.name} was used`);
  }
  use(model, session, { isRetry: age === 1 });
}

function use(model: Model, session: Session | AgentSession, { isRetry = false } = {}): void {
  if ('customer' in session) session.seenDay = model.today;
  if (!isRetry) session.expiresAt = model.now + REFRESH_SECONDS * 1000;
}

/**
 * Replaces the device used longest ago if the customer has too many.
 *
 * @param spared a session that is copied, and never replaced
 * @throws Rejection 429 if that device is one by transfer and was used within 30 days
 */
export function makeRoom(model: Model, customer: Customer, kinds: SessionKind[], spared?: Session): void {
  const devices = model.sessions
    .filter((session) => session.customer === customer && kinds.includes(session.kind) && !model.whyNotUsable(session))
    .filter(({ kind, browser }) => browser || kind === 'refresh');
  if (devices.length < (kinds.includes('sign_in') ? MAX_SIGNED_IN_BROWSERS : MAX_DEVICES)) return;
  const others = devices.filter((device) => device !== spared);
  const [oldest] = others.sort((one, other) => one.seenDay - other.seenDay || one.madeAt - other.madeAt);
  if (!oldest) return;
  if (kinds.includes('refresh') && oldest.seenDay >= model.today - USED_DAYS)
    throw new Rejection(429, 'temporarily_unavailable', `${customer.name} has ${devices.length} devices`);
  remove(model, oldest, `${model.event} replaced ${oldest.name}`);
}

function assertMayTransfer(model: Model, customer: Customer): void {
  const inForce = model.sessions.filter((session) => session.customer === customer && !model.whyNotUsable(session));
  const codes = inForce.filter(({ kind }) => kind === 'code').length;
  const byTransfer = inForce.filter(({ kind }) => !['own', 'sign_in', 'token'].includes(kind)).length;
  if (codes >= MAX_CODES || byTransfer >= MAX_TRANSFER_SESSIONS)
    throw new Rejection(429, 'temporarily_unavailable', `${customer.name} has ${codes} codes and ${byTransfer} in all`);
}
