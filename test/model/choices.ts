import type { AgentSession, AgentToken, Browser, Client, Customer, Organization, Session, Token } from './things.js';
import type { Walk } from './walk.js';

export const NUMBER_COUNT = 8;
export const MAX_NUMBER = 999;
export const GROUPS = ['', '', 'one', 'two'];

/** There is no thing of a kind that a command needs. The command then does nothing. */
export class NoChoiceError extends Error {}

/**
 * Chooses the arguments of a command. Lower numbers choose what was made last and what is usual, so failures shrink to
 * it.
 */
export class Chooser {
  private next = 0;

  constructor(
    private readonly walk: Walk,
    private readonly numbers: number[],
  ) {}

  /** True with a probability in percent. */
  chance(percent: number): boolean {
    return this.number() >= 1 - percent / 100;
  }

  one<Value>(values: readonly Value[]): Value {
    return values[Math.floor(this.number() * values.length)] as Value;
  }

  /** One of some things, more often of those that were made last. @throws NoChoiceError */
  recent<Thing>(things: readonly Thing[]): Thing {
    const chosen = things[things.length - 1 - Math.floor(this.number() ** 2 * things.length)];
    if (chosen === undefined) throw new NoChoiceError();
    return chosen;
  }

  /** Usually one of those that are alive. @throws NoChoiceError */
  mostly<Thing>(things: readonly Thing[], isAlive: (thing: Thing) => boolean, percent = 92): Thing {
    const alive = this.chance(100 - percent) ? [] : things.filter(isAlive);
    return this.recent(alive.length > 0 ? alive : things);
  }

  token(percent?: number): Token {
    return this.mostly(this.model.tokens, (token) => !this.model.whyNotValid(token), percent);
  }

  agentToken(percent?: number): AgentToken {
    return this.mostly(this.model.agentTokens, (token) => !this.model.whyNotValid(token), percent);
  }

  /** A customer, and a token of this customer or of an agent. */
  bearer(percentOfAgents: number): { token: Token | AgentToken; customer: Customer } {
    const token = this.chance(percentOfAgents) ? this.agentToken() : this.token();
    return { token, customer: 'customer' in token ? token.customer : this.customer(token.session.agent.organization) };
  }

  browser(): Browser {
    return this.mostly(this.model.browsers, ({ gone }) => !gone, 85);
  }

  perhapsBrowser(percent = 60): Browser | undefined {
    return this.chance(percent) && this.model.browsers.length > 0 ? this.browser() : undefined;
  }

  organization(): Organization {
    return this.one(this.walk.organizations);
  }

  clientFor(organization: Organization): Client {
    return this.one(this.walk.clients.filter(({ organizations }) => organizations.includes(organization)));
  }

  /** Rarely another client than that of a code or refresh token. */
  clientOf(session: Session | AgentSession, percent = 97): Client {
    const clients = 'agent' in session ? this.walk.agentClients : this.walk.clients;
    return this.chance(percent) ? (session.client as Client) : this.one(clients);
  }

  /** A customer that no purge may have deleted. */
  customer(of: Organization): Customer {
    return this.mostly(
      this.model.customers.filter(({ isIdle, id }) => !isIdle && id !== ''),
      ({ gone, isLinked, organization }) => !gone && !isLinked && organization === of,
    );
  }

  user(of: Organization): string {
    const { customers } = this.model;
    const users = customers.flatMap(({ organization, user }) => (organization === of ? (user ?? []) : []));
    return users.length > 0 && this.chance(65) ? this.recent(users) : `${this.walk.id}-${customers.length + 1}`;
  }

  /** A transfer token or an authorization code. */
  code(): Session | AgentSession {
    const codes = this.oneKind(({ code }) => code !== '');
    return this.mostly(codes, (session) => session.kind === 'code' && !this.model.whyNotUsable(session), 95);
  }

  /** A redeemed code whose session is there. */
  usedCode(): Session | AgentSession {
    return this.recent(this.oneKind(({ code, kind, gone }) => code !== '' && kind !== 'code' && !gone));
  }

  /** A session with a refresh token. */
  refreshSession(): Session | AgentSession {
    const sessions = this.oneKind(({ refreshTokens }) => refreshTokens.length > 0);
    return this.mostly(sessions, (session) => !this.model.whyNotUsable(session));
  }

  /** Sessions of customers, or of agents. */
  private oneKind(isMeant: (session: Session | AgentSession) => boolean): (Session | AgentSession)[] {
    const kinds = [this.model.sessions, this.model.agentSessions].map((sessions) => sessions.filter(isMeant));
    return this.one(kinds.filter(({ length }) => length > 0)) ?? [];
  }

  private get model() {
    return this.walk.model;
  }

  private number(): number {
    return (this.numbers[this.next++ % NUMBER_COUNT] as number) / (MAX_NUMBER + 1);
  }
}
