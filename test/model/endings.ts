import { DAY_MS, type Model } from './model.js';
import type { Agent, AgentSession, AgentToken, AnySession, Browser, Customer, Session, Token } from './things.js';

/** What ends what (protocol §3.10). */

const CLOCK_MARGIN_MS = 60_000;

/** Ends a session with all that was made with it. */
export function end(model: Model, session: AnySession, why = `${model.event} ended ${session.name}`): void {
  if (session.gone) return;
  session.gone = why;
  for (const child of model.childrenOf(session))
    end(model, child, `${child.name} was made with ${session.name}: ${why}`);
}

/** Ends the access tokens of a session, and what was made in it since a minute before the token was issued. */
export function endToken(model: Model, token: Token | AgentToken): void {
  if (!('customer' in token)) return model.whyEnded(token) ? undefined : raiseEpoch(model, token.session);
  const { session, epoch, name } = token;
  const why = `${model.event} ended ${name}`;
  if (session.gone) return;
  if (session.kind === 'moved' || session.kind === 'token') return end(model, session, why);
  const isPast = model.isExpired(token) || session.raises.length !== epoch;
  const made = model.childrenOf(session).filter(({ madeAt }) => madeAt >= token.issuedAt * 1000 - CLOCK_MARGIN_MS);
  for (const child of made.filter(({ parentEpoch }) => !isPast || parentEpoch === epoch))
    end(model, child, `${child.name} was made with a token of ${session.name}: ${why}`);
  if (!isPast) raiseEpoch(model, session);
}

/** Ends the sessions of an agent: at the page, codes, refresh tokens and access tokens. */
export function endAllOfAgent(model: Model, agent: Agent): void {
  for (const session of model.agentSessions) if (session.agent === agent) end(model, session);
}

/** Ends everything of a customer, or all but its own browsers and those by sign-in. */
export function endAll(model: Model, customer: Customer, { browsers }: { browsers: boolean }): void {
  customer.raises.push(`${model.event} raised the generation of ${customer.name}`);
  const sessions = model.sessions.filter((session) => session.customer === customer && !session.gone);
  for (const session of sessions)
    if (!browsers && ['own', 'sign_in'].includes(session.kind)) raiseEpoch(model, session);
    else session.gone = `${model.event} ended all of ${customer.name}`;
  if (browsers) for (const { browser } of sessions) endIfUnused(model, browser);
}

/** The secret of a browser that leads to no customer stops working. */
export function endIfUnused(model: Model, browser: Browser | undefined): boolean {
  if (!browser || browser.gone || model.leading(browser).length > 0) return false;
  browser.gone = `${model.event} left ${browser.name} without a customer`;
  for (const session of model.sessions) if (session.browser === browser) detach(model, session);
  return true;
}

/** The browser leads to the customer no more. Its tokens and devices stay. */
export function detach(model: Model, session: Session): void {
  session.browser = undefined;
  session.expiresAt = Math.min(session.expiresAt, model.now + DAY_MS);
}

/** Removes a session that has expired or was replaced. What was made with it then belongs to its parent. */
export function remove(model: Model, session: Session, why: string): void {
  session.gone = why;
  const { parent, parentEpoch, madeAt } = session;
  for (const child of model.childrenOf(session)) Object.assign(child, { parent, parentEpoch, madeAt });
}

/** Removes what expired a day ago, and once a day the browsers that lead nowhere and the customers that are idle. */
export function purge(model: Model): void {
  const purged = model.sessions.filter(({ gone, expiresAt }) => !gone && expiresAt < model.now - DAY_MS);
  for (const session of purged) remove(model, session, `${session.name} had expired and was purged`);
  for (const { browser } of purged) endIfUnused(model, browser);
  for (const session of model.agentSessions)
    if (session.expiresAt < model.now - 2 * DAY_MS && !isReferredTo(model, session))
      session.gone ??= `${session.name} had expired and was purged`;
  if (model.purges.lastDay === model.today) return;
  model.purges.lastDay = Math.max(model.purges.lastDay, model.today);
  const remaining = model.sessions.filter(({ gone }) => !gone);
  for (const browser of model.browsers)
    if (!remaining.some((session) => session.browser === browser)) browser.gone ??= 'a purge found no session of it';
  for (const customer of model.customers) customer.isIdle ||= mayBePurged(model, customer);
}

/** Whether a session is left that was begun with tokens of an agent's session. */
function isReferredTo(model: Model, agentSession: AgentSession): boolean {
  return model.sessions.some(
    ({ gone, agentToken }) => !gone && agentToken?.session === agentSession && !model.whyEnded(agentToken),
  );
}

function mayBePurged(model: Model, customer: Customer): boolean {
  const { isOfBrowser, user, usedDay, organization } = customer;
  const isLed = model.sessions.some(
    (session) => session.customer === customer && !session.gone && session.expiresAt > model.now,
  );
  return isOfBrowser && user === undefined && !isLed && usedDay + organization.idleDays < model.today;
}

function raiseEpoch({ event }: Model, { name, raises }: AnySession): void {
  raises.push(`${event} raised the epoch ${raises.length} of ${name}`);
}
