import type { AgentBrowser } from '../support/authorization-page.js';

/** The things of the model. Each has a name for the log of a walk, such as `s3`, and what the service gave for it. */

export interface Organization {
  name: string;
  id: string;
  idleDays: number;
  /** The days for which a browser leads to a user's customer after a sign-in. */
  signInDays: number;
  agent: Agent;
}

export interface Client {
  id: string;
  origin: string;
  /** The organizations that admit it. */
  organizations: Organization[];
}

export interface Customer {
  name: string;
  id: string;
  organization: Organization;
  group: string;
  isOfBrowser: boolean;
  user?: string | undefined;
  /** The events that raised the generation. */
  raises: string[];
  isLinked: boolean;
  /** The day of the last token. */
  usedDay: number;
  /** Why the customer is gone. */
  gone?: string;
  /** Whether a purge may have deleted the customer, because it was idle. */
  isIdle: boolean;
}

export interface Browser {
  name: string;
  id: string;
  /** Each pair of identity cookies that was set for it recognizes it (protocol §5.3). */
  pairs: string[];
  /** Why the secret does not work any more. */
  gone?: string;
}

/** What a session of a customer and one of an agent have in common. */
export interface AnySession {
  name: string;
  /** The claim `sid`; empty before the first token. */
  sid: string;
  /** The events that raised the epoch, the number of which is the epoch. */
  raises: string[];
  expiresAt: number;
  /** The client of a code or refresh token. */
  client?: Client | undefined;
  /** The transfer token or authorization code, also after its redemption. */
  code: string;
  verifier: string;
  /** All refresh tokens in their order. The last one is the current one. */
  refreshTokens: string[];
  /** Why the session is gone. */
  gone?: string;
}

/** `token`: an access token without a session, which is one in the model, because it can be a parent. */
export type SessionKind = 'own' | 'sign_in' | 'code' | 'moved' | 'transferred' | 'refresh' | 'token';

export interface Session extends AnySession {
  kind: SessionKind;
  customer: Customer;
  /** Absent for other kinds, and after `forget`. */
  browser?: Browser | undefined;
  parent?: Session | undefined;
  parentEpoch: number;
  depth: number;
  /** The token with which an agent began the session, or one that it descends from. */
  agentToken?: AgentToken | undefined;
  madeAt: number;
  seenDay: number;
  signedInDay?: number | undefined;
}

export interface Agent {
  id: string;
  email: string;
  password: string;
  organization: Organization;
}

export interface AgentSession extends AnySession {
  kind: 'page' | 'code' | 'refresh' | 'token';
  agent: Agent;
  /** The browser of a sign-in at the page. */
  page?: AgentBrowser;
}

interface AnyToken {
  name: string;
  text: string;
  epoch: number;
  client: Client;
  issuedAt: number;
}

/** An access token of a customer. */
export interface Token extends AnyToken {
  customer: Customer;
  generation: number;
  session: Session;
}

/** An access token of an agent. */
export interface AgentToken extends AnyToken {
  session: AgentSession;
}

/** The response that the model expects instead of a success, and why. */
export class Rejection extends Error {
  constructor(
    readonly status: number,
    readonly error: string,
    because: string,
  ) {
    super(because);
  }
}
