import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { isDeepStrictEqual } from 'node:util';
import type { TestService } from '../../packages/conformance-kit/src/test-service.js';
import { claimsOf } from '../support/agent-tokens.js';
import type { SignInSystem } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieHeader } from '../support/cookie-grant.js';
import { browserIdOf, secretOf } from '../support/identities.js';
import { manage } from '../support/management-api.js';
import type { TestResponse } from '../support/test-service.js';
import { ADMIN_TOKEN } from '../support/use-service.js';
import { Model } from './model.js';
import { type AgentToken, type Browser, type Client, type Organization, Rejection, type Token } from './things.js';

/** The requests of a check are sent together. */
const CONNECTIONS = new Agent({ keepAlive: true, maxSockets: 8 });

/** The number of responses of each kind to each command, over all walks of a run. */
export type Statistics = Map<string, number>;

export const nameOf = (thing: { name: string } | undefined): string => thing?.name ?? 'nothing';

/** The claim `act` of what an agent obtains with a token. */
const actOf = ({ session, epoch, client }: AgentToken) => ({
  ...{ sub: session.agent.id, sid: session.sid, ep: epoch, client_id: client.id },
});

/** What the service did differently, and the walk that led there. */
export class WalkError extends Error {}

/** The service and the model, which get the same commands. */
export class Walk {
  readonly model = new Model(() => this.service.clock.now(), this.purges);
  /** Part of the ids of its users, because walks share a service. */
  readonly id = randomUUID();
  /** What happened so far, a line for each request. */
  readonly log: string[] = [];
  /** The access tokens that had ended at the last check. */
  readonly ended = new Set<string>();

  constructor(
    readonly service: TestService,
    readonly organizations: [acme: Organization, rival: Organization],
    readonly clients: Client[],
    /** The backend of the first organization, and another client that has no code. */
    readonly agentClients: Client[],
    readonly users: SignInSystem,
    readonly statistics: Statistics,
    private readonly purges: { lastDay: number },
  ) {}

  admin(method: string, path: string, body?: object): Promise<TestResponse> {
    return manage(this.service, method, path, bearer(ADMIN_TOKEN), body);
  }

  /**
   * What the service says about an access token. Nearly all requests of a walk are these, so a lean client sends them.
   */
  async introspect(token: string): Promise<{ active: boolean; inactive_reason?: string }> {
    const url = `${this.service.managementUrl}/oauth2/introspect`;
    const request = httpRequest(url, { agent: CONNECTIONS, method: 'POST', headers: bearer(ADMIN_TOKEN) });
    request.end(JSON.stringify({ token }));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return JSON.parse(await text(response));
  }

  /** Writes a line without a request of `send` to the log. */
  note(label: string, words = ''): void {
    this.log.push(`${this.log.length + 1}. ${label} ${words}`);
    this.count(label);
  }

  count(label: string): void {
    this.statistics.set(label, (this.statistics.get(label) ?? 0) + 1);
  }

  /**
   * Sends a request and compares the response with what the model expects.
   *
   * @param label of the command in the statistics
   * @param words the command with its arguments
   * @param decide changes the model; throws a Rejection for an error response
   * @returns the result of the model and the response; `undefined` if both reject the request
   */
  async send<Result>(
    label: string,
    words: string,
    decide: () => Result,
    request: () => Promise<TestResponse>,
  ): Promise<{ result: Result; response: TestResponse } | undefined> {
    this.service.clock.advance({ milliseconds: 1 }); // no two things have the same time
    this.model.event = `step ${this.log.length + 1} (${label} ${words})`;
    let expected: { result: Result } | Rejection;
    try {
      expected = { result: decide() };
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      expected = error;
    }
    const response = await request();
    const { status, error, message } =
      expected instanceof Rejection
        ? expected
        : { status: 200, error: undefined, message: 'nothing speaks against it' };
    this.log.push(`${this.log.length + 1}. ${label} ${words}: ${response.status} ${response.body?.error ?? ''}`);
    if (response.status !== status || (error !== undefined && response.body?.error !== error))
      throw this.failure(
        `the model expects ${status} ${error ?? ''}, because ${message}\n${response.text.slice(0, 300)}`,
      );
    this.count(`${label}: ${status}`);
    return expected instanceof Rejection ? undefined : { result: expected.result, response };
  }

  /** Sends a request that gives an access token, and perhaps cookies. @returns the body of a success */
  async grant(
    label: string,
    words: string,
    decide: () => { token: Token | AgentToken; browser?: Browser | undefined },
    request: () => Promise<TestResponse>,
  ): Promise<TestResponse['body'] | undefined> {
    const given = await this.send(label, words, decide, request);
    if (!given) return undefined;
    const { result, response } = given;
    this.take(result.token, response.body);
    if (result.browser) this.takeCookies(result.browser, response);
    return response.body;
  }

  /** Notes what a response gave: the token, and the things that its claims name. */
  take(token: Token | AgentToken, body: { access_token: string; entity_id?: string }): void {
    token.text = body.access_token;
    const claims = claimsOf(token.text);
    const isOfCustomer = 'customer' in token;
    const owner = isOfCustomer ? token.customer : token.session.agent;
    const session = token.session.kind === 'token' && isOfCustomer ? undefined : token.session;
    if (isOfCustomer) this.sameOrNew(this.model.customers, token.customer, 'id', claims.sub as string);
    if (session) this.sameOrNew(this.model.allSessions(), session, 'sid', claims.sid as string);
    const expected = {
      ...{ sub: owner.id, organization_id: owner.organization.id, client_id: token.client.id, iat: token.issuedAt },
      ...{ sid: session?.sid, ep: session && token.epoch },
      group_id: isOfCustomer && token.customer.group !== '' ? token.customer.group : undefined,
      act: isOfCustomer && token.session.agentToken ? actOf(token.session.agentToken) : undefined,
    };
    const given = Object.fromEntries(Object.keys(expected).map((name) => [name, claims[name]]));
    if (!isDeepStrictEqual(given, expected) || (isOfCustomer && body.entity_id !== owner.id))
      throw this.failure(`${token.name} has ${JSON.stringify(given)}, and should have ${JSON.stringify(expected)}`);
  }

  /** One pair after another. */
  cookieOf(browser: Browser | undefined): { cookie?: string } {
    return browser ? { cookie: browser.pairs[this.log.length % browser.pairs.length] as string } : {};
  }

  /** Notes the cookies of a response. */
  takeCookies(browser: Browser, response: TestResponse): void {
    this.sameOrNew(this.model.browsers, browser, 'id', browserIdOf(secretOf(response)));
    const pair = cookieHeader(response);
    if (!browser.pairs.includes(pair)) browser.pairs.push(pair);
  }

  failure(reason: string): WalkError {
    return new WalkError(`${reason}\nThe walk:\n${this.log.join('\n')}`);
  }

  /** An id of the service names one thing of the model. */
  private sameOrNew<Name extends string, Thing extends Record<Name, string> & { name: string }>(
    things: Thing[],
    thing: Thing,
    field: Name,
    id: string,
  ): void {
    const named = things.find((each) => each[field] === id) ?? (thing[field] === '' ? thing : undefined);
    if (named !== thing)
      throw this.failure(`the response names ${named?.name ?? 'a new one'}, and the model ${thing.name}`);
    Object.assign(thing, { [field]: id });
  }
}
