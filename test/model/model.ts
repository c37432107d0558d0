import {
  type Agent,
  type AgentSession,
  type AgentToken,
  type AnySession,
  type Browser,
  type Client,
  type Customer,
  type Organization,
  Rejection,
  type Session,
  type SessionKind,
  type Token,
} from './things.js';

export const DAY_MS = 86_400_000;
export const TOKEN_SECONDS = 28_800;
export const REFRESH_SECONDS = 4 * 86_400;

const unusedSession = () => ({ raises: [], sid: '', code: '', verifier: '', refreshTokens: [] });

/**
 * What there is, what is valid, and why not, in words (protocol §3.13). The other files have the rules that change it.
 */
export class Model {
  readonly customers: Customer[] = [];
  readonly browsers: Browser[] = [];
  readonly sessions: Session[] = [];
  readonly agentSessions: AgentSession[] = [];
  readonly tokens: Token[] = [];
  readonly agentTokens: AgentToken[] = [];
  /** The event under way, in words. */
  event = '';

  /**
   * @param clock of the service, in milliseconds since 1970
   * @param purges the last day on which the service purged, in this walk or one before
   */
  constructor(
    private readonly clock: () => number,
    readonly purges: { lastDay: number },
  ) {}

  get now(): number {
    return this.clock();
  }

  get today(): number {
    return Math.floor(this.now / DAY_MS);
  }

  // Things

  newCustomer(organization: Organization, group: string, more: Partial<Customer> = {}): Customer {
    const unused = { id: '', raises: [], isOfBrowser: true, isLinked: false, isIdle: false };
    return this.add(this.customers, 'c', { organization, group, usedDay: this.today, ...unused, ...more });
  }

  /** A customer that no browser has made: of a user, or of an agent. */
  newUser(organization: Organization, user: string | undefined): Customer {
    return this.newCustomer(organization, '', { isOfBrowser: false, user });
  }

  newBrowser(): Browser {
    return this.add(this.browsers, 'b', { id: '', pairs: [] });
  }

  newSession(kind: SessionKind, customer: Customer, more: Partial<Session> & { expiresAt: number }): Session {
    const made = { madeAt: this.now, seenDay: this.today, parentEpoch: 0, depth: 0 };
    return this.add(this.sessions, 's', { kind, customer, ...unusedSession(), ...made, ...more });
  }

  newAgentSession(
    kind: AgentSession['kind'],
    agent: Agent,
    seconds: number,
    more: Partial<AgentSession>,
  ): AgentSession {
    const expiresAt = this.now + seconds * 1000;
    return this.add(this.agentSessions, 'as', { kind, agent, ...unusedSession(), expiresAt, ...more });
  }

  /** @param source the customer of a token without a session, or the session */
  newToken(client: Client, source: Customer | Session, agentToken?: AgentToken): Token {
    const expiresAt = this.now + TOKEN_SECONDS * 1000;
    const session = 'kind' in source ? source : this.newSession('token', source, { agentToken, expiresAt });
    const { customer } = session;
    customer.usedDay = this.today;
    return this.add(this.tokens, 't', {
      customer,
      generation: customer.raises.length,
      ...this.issued(session, client),
    });
  }

  newAgentToken(session: AgentSession): AgentToken {
    return this.add(this.agentTokens, 'a', this.issued(session, session.client as Client));
  }

  private issued<Of extends AnySession>(session: Of, client: Client) {
    return { text: '', session, epoch: session.raises.length, client, issuedAt: Math.floor(this.now / 1000) };
  }

  private add<Thing extends { name: string }>(things: Thing[], prefix: string, thing: Omit<Thing, 'name'>): Thing {
    const named = { ...thing, name: `${prefix}${things.length + 1}` } as Thing;
    things.push(named);
    return named;
  }

  // Validity

  whyNotValid(token: Token | AgentToken): string | undefined {
    if (this.isExpired(token)) return 'it has expired';
    if (!('customer' in token)) return this.whyEnded(token);
    const { customer, session, generation } = token;
    const why = customer.gone ?? customer.raises[generation] ?? this.whyEnded(token);
    return why ?? (session.agentToken && this.whyEnded(session.agentToken));
  }

  /** Why a token of a session has ended. An agent's token that has expired has not: what was obtained with it stays. */
  whyEnded({ session, epoch }: { session: AnySession; epoch: number }): string | undefined {
    return session.gone ?? session.raises[epoch];
  }

  /** Why a session begins nothing any more: no visit, redemption, rotation, transfer or authorization code. */
  whyNotUsable({ gone, expiresAt, agentToken, name }: AnySession & Pick<Session, 'agentToken'>): string | undefined {
    return gone ?? (expiresAt <= this.now ? `${name} has expired` : agentToken && this.whyEnded(agentToken));
  }

  /** @throws Rejection 401 */
  assertValid(token: Token | AgentToken): void {
    const why = this.whyNotValid(token);
    if (why) throw new Rejection(401, 'invalid_token', `${token.name} is not valid: ${why}`);
  }

  /** @throws Rejection 400 for an agent of another organization, and for a customer that is gone or linked */
  assertReached(token: AgentToken, customer: Customer, { mayBeLinked = false } = {}): void {
    this.assertValid(token);
    const isReached = customer.organization === token.session.agent.organization && !customer.gone;
    if (!isReached || (customer.isLinked && !mayBeLinked))
      throw new Rejection(400, 'invalid_request', `${token.name} does not reach ${customer.name}`);
  }

  // Lookups

  /** The sessions with which a browser leads to customers. */
  leading(browser: Browser): Session[] {
    return this.sessions.filter((session) => session.browser === browser && !this.whyNotUsable(session));
  }

  /** The session with which a browser leads to its customer of an organization and group. */
  leadingTo(browser: Browser, organization: Organization, group: string): Session | undefined {
    const isHere = ({ customer }: Session) => customer.organization === organization && customer.group === group;
    return this.leading(browser).find(isHere);
  }

  /** The customer of a user of an organization. */
  customerOf(organization: Organization, user: string): Customer | undefined {
    return this.customers.find((each) => each.user === user && each.organization === organization && !each.gone);
  }

  /** All sessions, of customers and agents. */
  allSessions(): (Session | AgentSession)[] {
    return [...this.sessions, ...this.agentSessions];
  }

  childrenOf(parent: AnySession): Session[] {
    return this.sessions.filter((session) => session.parent === parent && !session.gone);
  }

  isExpired({ issuedAt }: Token | AgentToken): boolean {
    return issuedAt + TOKEN_SECONDS <= this.now / 1000;
  }
}
