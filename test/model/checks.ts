import { setTimeout as sleep } from 'node:timers/promises';
import { TokenVerifier } from '../../packages/token-verifier/src/token-verifier.js';
import { pkce } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { FOR_NATIVE } from '../support/authorization-page.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { runCommandWithInput } from '../support/operator-commands.js';
import { FEED_SECRET, FEED_SERVERS } from '../support/revocation-feed.js';
import type { TestService } from '../support/test-service.js';
import { askPage } from './agents.js';
import type { AgentSession, AgentToken, Customer, Token } from './things.js';
import type { Walk } from './walk.js';

/** How long a verifier may take to learn of an ended token on a busy machine. */
const MAX_WAIT_MS = 120_000;
const PAUSE_MS = 10;

/** Compares what the service says about each thing with the model, without side effects. */

/**
 * Every access token by introspection.
 *
 * @param options `all`: also the tokens that had ended at the check before; no event makes an ended token valid
 */
export async function checkTokens(walk: Walk, { all = false } = {}): Promise<void> {
  const { model, ended } = walk;
  const check = async ({ name, text }: Token | AgentToken, why: string | undefined) => {
    if (ended.has(text) && !all) return;
    const { active, inactive_reason } = await walk.introspect(text);
    if (active !== (why === undefined))
      throw walk.failure(`${name} is ${active ? 'active' : inactive_reason}, but ${why ?? 'nothing ended it'}`);
    if (why !== undefined) ended.add(text);
  };
  await Promise.all([
    ...model.tokens.map((token) => check(token, model.whyNotValid(token))),
    ...model.agentTokens.map((token) => check(token, model.whyNotValid(token))),
  ]);
}

/** Every code and refresh token by `token explain`, every sign-in at the page, and the devices of each customer. */
export async function checkSessions(walk: Walk): Promise<void> {
  const { model } = walk;
  const explained = async (what: string, text: string, why: string | undefined) => {
    const { code } = await runCommandWithInput(walk.service, text, 'token', 'explain');
    if ((code === 0) !== (why === undefined))
      throw walk.failure(`${what} is ${code === 0 ? 'valid' : 'not valid'}, but ${why ?? 'nothing ended it'}`);
  };
  for (const session of model.allSessions()) {
    const { name, code, kind, refreshTokens } = session;
    const why = model.whyNotUsable(session);
    if (kind === 'page') await checkPage(walk, session, why);
    if (code !== '') await explained(`the code of ${name}`, code, kind === 'code' ? why : `${name} was redeemed`);
    for (const [index, text] of refreshTokens.entries()) {
      const age = refreshTokens.length - 1 - index;
      await explained(`a refresh token of ${name}`, text, age > 1 ? 'its successor was used' : why);
    }
  }
  for (const customer of model.customers)
    if (!customer.isIdle && customer.id !== '') await checkDevices(walk, customer);
}

/** An application that needs a consent each time gets no code. */
async function checkPage(walk: Walk, page: AgentSession, why: string | undefined): Promise<void> {
  const { error } = (await askPage(page, { ...FOR_NATIVE, ...pkce().asked })).body;
  if (error !== (why === undefined ? 'consent_required' : 'login_required'))
    throw walk.failure(`the page of ${page.name} says ${error}, but ${why ?? 'nothing ended it'}`);
}

async function checkDevices(walk: Walk, customer: Customer): Promise<void> {
  const { model } = walk;
  const { status, body } = await walk.admin('GET', `/admin/customers/${customer.id}`);
  if ((status === 404) !== (customer.gone !== undefined))
    throw walk.failure(`the operator gets ${status} for ${customer.name}, but ${customer.gone ?? 'nothing ended it'}`);
  if (status === 404) return;
  const usable = model.sessions.filter((session) => session.customer === customer && !model.whyNotUsable(session));
  const browsers = usable.flatMap(({ browser }) => browser?.id ?? []);
  const families = usable.flatMap(({ kind, sid }) => (kind === 'refresh' ? sid : []));
  const idsOf = (list: { id: string }[]) => list.map(({ id }) => id).sort();
  const listed = `${idsOf(body.browsers)} and ${idsOf(body.refresh_tokens)}`;
  const expected = `${browsers.sort()} and ${families.sort()}`;
  if (listed !== expected)
    throw walk.failure(`${customer.name} has the devices ${listed}, and should have ${expected}`);
}

/** A resource server that verifies tokens offline. */
export class Follower {
  private readonly verifier: TokenVerifier;

  constructor(private readonly service: TestService) {
    const id = FEED_SERVERS[0]?.id as string;
    const revocations = { url: `${service.managementUrl}/oauth2/revocations`, id, secret: FEED_SECRET } as const;
    this.verifier = new TokenVerifier(
      {
        ...{ issuer: 'https://auth.example', audience: 'customer-api' },
        jwksUrl: `${service.url}/.well-known/jwks.json`,
        revocations: { ...revocations, maxAgeSeconds: 15, onStale: 'reject' },
      },
      { now: () => service.clock.now(), monotonic: () => performance.now() },
    );
  }

  /** Every customer token, after everything that has ended so far has arrived. */
  async check(walk: Walk): Promise<void> {
    await this.catchUp();
    for (const token of walk.model.tokens) {
      const decision = await this.decide(token.text);
      const why = walk.model.whyNotValid(token);
      if ((decision === 'valid') !== (why === undefined))
        throw walk.failure(`${token.name} is ${decision} at the verifier, but ${why ?? 'nothing ended it'}`);
    }
  }

  close(): void {
    this.verifier.close();
  }

  /**
   * A token that ends now has the last position. The list is current if a later request than the moves of the clock
   * says so.
   */
  private async catchUp(): Promise<void> {
    await this.verifier.ready({ signal: AbortSignal.timeout(MAX_WAIT_MS) });
    const since = performance.now();
    do {
      const { access_token } = (await this.service.post(TOKEN, cookieBody())).body;
      await this.service.send('DELETE', TOKEN, bearer(access_token));
      while ((await this.decide(access_token)) !== 'revoked') {
        if (performance.now() - since > MAX_WAIT_MS) throw new Error('an ended token did not arrive at the verifier');
        await sleep(PAUSE_MS);
      }
    } while (this.verifier.state.revocations !== 'current');
  }

  private decide(token: string): Promise<string> {
    return this.verifier.verify(token).then(
      () => 'valid',
      ({ code }) => code,
    );
  }
}
