import { detach, endAll, endIfUnused } from './endings.js';
import { DAY_MS, type Model } from './model.js';
import { type Browser, type Customer, type Organization, Rejection, type Session } from './things.js';
import { makeRoom, redeem } from './transfers.js';

/** Where a response leads: the browser of its cookies, and the session of its token. */
export interface Led {
  browser: Browser;
  session: Session;
}

/** The browser that a request comes from, if its secret works. */
function recognized(from: Browser | undefined): Browser | undefined {
  return from?.gone ? undefined : from;
}

/** The end of the last day on which a browser leads to its customer (protocol §4.7 and §5.9). */
function expiryOf(organization: Organization, seenDay: number, signedInDay?: number): number {
  const { idleDays, signInDays } = organization;
  const lastDay = Math.min(seenDay + idleDays, signedInDay === undefined ? Infinity : signedInDay + signInDays);
  return (lastDay + 1) * DAY_MS;
}

/** The cookie grant (protocol §4.1 and §5.3). */
export function visit(model: Model, organization: Organization, group: string, from?: Browser): Led {
  const known = recognized(from);
  const session = known && model.leadingTo(known, organization, group);
  if (known && session) {
    const end = expiryOf(organization, model.today, session.signedInDay);
    if (session.seenDay < model.today && end > model.now) session.expiresAt = end;
    session.seenDay = Math.max(session.seenDay, model.today);
    return { browser: known, session };
  }
  const browser = known ?? model.newBrowser();
  const isHere = ({ customer }: Session) => customer.organization === organization && customer.group === group;
  for (const each of model.sessions) if (each.browser === browser && isHere(each)) detach(model, each);
  const customer = model.newCustomer(organization, group);
  const expiresAt = expiryOf(organization, model.today);
  return { browser, session: model.newSession('own', customer, { browser, expiresAt }) };
}

/** A redemption with `remember: "browser"` (protocol §5.6). @returns the browser of the response */
export function remember(model: Model, code: Session, replace: boolean, from?: Browser): Browser {
  const { customer } = code;
  const earlier = recognized(from);
  const known = earlier && model.leadingTo(earlier, customer.organization, customer.group);
  if (earlier && known?.customer === customer) {
    redeem(model, code);
    return earlier;
  }
  if (known && !replace)
    throw new Rejection(409, 'identity_conflict', `${earlier?.name} leads to ${known.customer.name}`);
  makeRoom(model, customer, ['transferred', 'refresh']);
  const browser = model.newBrowser();
  copySessions(model, earlier, browser, customer.organization);
  const seenDay = model.today;
  const signedInDay = customer.user === undefined ? undefined : seenDay;
  const expiresAt = expiryOf(customer.organization, seenDay, signedInDay);
  Object.assign(code, { kind: 'transferred', browser, seenDay, signedInDay, expiresAt });
  return browser;
}

/** The user of a sign-in, whose customer the model finds or creates (protocol §4.7). */
export function signIn(
  model: Model,
  organization: Organization,
  user: string,
  { from, link }: { from?: Browser | undefined; link: boolean },
): Led {
  const earlier = recognized(from);
  const session = earlier && model.leadingTo(earlier, organization, '');
  const known = model.customerOf(organization, user);
  if (earlier && session?.kind === 'sign_in' && session.customer === known) {
    const expiresAt = expiryOf(organization, model.today, model.today);
    Object.assign(session, { seenDay: model.today, signedInDay: model.today, expiresAt });
    return { browser: earlier, session };
  }
  const visitor = link && session?.kind === 'own' && session.customer.user === undefined ? session.customer : undefined;
  const customer = known ?? visitor ?? model.newUser(organization, user);
  customer.user = user;
  if (visitor) endAll(model, visitor, { browsers: true });
  if (visitor && known) visitor.isLinked = true;
  makeRoom(model, customer, ['sign_in']);
  const browser = model.newBrowser();
  copySessions(model, earlier, browser, organization);
  const expiresAt = expiryOf(organization, model.today, model.today);
  return { browser, session: model.newSession('sign_in', customer, { browser, signedInDay: model.today, expiresAt }) };
}

/** @returns whether the response clears the cookies (protocol §4.13) */
export function forget(model: Model, organization: Organization, group: string | undefined, from?: Browser): boolean {
  const browser = recognized(from);
  if (!browser) return true;
  const isForgotten = ({ customer }: Session) =>
    customer.organization === organization && (group === undefined || customer.group === group);
  const leading = model.leading(browser);
  if (leading.length > 0 && !leading.some(isForgotten)) return false;
  for (const session of model.sessions) if (session.browser === browser && isForgotten(session)) detach(model, session);
  return endIfUnused(model, browser);
}

/**
 * With `browsers`, a customer ends its sessions only from one of its own browsers, if there is one (protocol §4.14).
 */
export function assertOwn(model: Model, customer: Customer, from: Browser | undefined): void {
  const isOwn = ({ customer: of, kind }: Session) => of === customer && (kind === 'own' || kind === 'sign_in');
  const own = model.browsers.filter((browser) => model.leading(browser).some(isOwn));
  const browser = recognized(from);
  if (own.length > 0 && !(browser && own.includes(browser)))
    throw new Rejection(400, 'invalid_request', `the cookies are not of ${own.map(({ name }) => name)}`);
}

/** The new browser also leads where the earlier one led in other organizations. */
function copySessions(model: Model, earlier: Browser | undefined, browser: Browser, organization: Organization): void {
  if (!earlier) return;
  for (const session of model.leading(earlier).filter(({ customer }) => customer.organization !== organization)) {
    const { kind, customer, parent, parentEpoch, depth, agentToken, seenDay, signedInDay, expiresAt } = session;
    const isDevice = kind === 'transferred';
    try {
      makeRoom(model, customer, isDevice ? ['transferred', 'refresh'] : [kind], session);
    } catch {
      continue; // a copy of a device replaces none that is in use
    }
    const copy = { parent, parentEpoch, depth, agentToken, seenDay, signedInDay, expiresAt };
    model.newSession(kind, customer, { browser, ...copy });
  }
}
