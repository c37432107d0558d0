import { agentTokenBody } from '../support/agent-tokens.js';
import { bearer } from '../support/authorization-headers.js';
import { TOKEN } from '../support/cookie-grant.js';
import { END_SESSIONS } from '../support/end-sessions.js';
import { purge } from '../support/operator-commands.js';
import { PUBLIC_SITE } from '../support/test-registry.js';
import * as actions from './actions.js';
import * as agents from './agents.js';
import * as browserRules from './browser-rules.js';
import { type Chooser, GROUPS } from './choices.js';
import * as endings from './endings.js';
import type { AgentSession, Browser, Session } from './things.js';
import { nameOf, type Walk } from './walk.js';

type Run = (walk: Walk, choose: Chooser) => unknown;

interface Command {
  weight: number;
  run: Run;
}

/** The commands of a walk. The more weight one has, the more often it occurs. */
export const COMMANDS = new Map<string, Command>();

function command(name: string, weight: number, run: Run): void {
  COMMANDS.set(name, { weight, run });
}

const redemptionOf = (choose: Chooser): actions.Redemption => ({
  remember: choose.one(['browser', 'browser', 'refresh_token', undefined] as const),
  replace: choose.chance(60),
  from: choose.perhapsBrowser(),
});

/** Redeems a transfer token or an authorization code. */
const redeem = (walk: Walk, choose: Chooser, code: Session | AgentSession) =>
  'agent' in code
    ? actions.redeemOfAgent(walk, code, choose.clientOf(code))
    : actions.redeem(walk, code, { client: choose.clientOf(code), ...redemptionOf(choose) });

// Browsers and further devices

command('visit', 14, (walk, choose) => {
  const organization = choose.organization();
  const from = choose.perhapsBrowser(85);
  return actions.visit(walk, choose.clientFor(organization), organization, choose.one(GROUPS), from);
});

command('transfer', 28, async (walk, choose) => {
  const { token, customer } = choose.bearer(30);
  const code = await actions.transfer(walk, token, customer, choose.clientFor(customer.organization));
  if (code && choose.chance(50)) await redeem(walk, choose, code);
});

command('redemption', 16, (walk, choose) => redeem(walk, choose, choose.code()));
command('replay', 5, (walk, choose) => redeem(walk, choose, choose.usedCode()));

/** One more than the bounds: of transfer tokens, of a chain, and of devices. */
const MANY = [
  [61, 'codes'],
  [9, undefined],
  [21, 'refresh_token'],
  [21, 'browser'],
] as const;

command('as many as possible', 1, async (walk, choose) => {
  let token = choose.token();
  const [number, work] = choose.one(MANY);
  const client = choose.clientFor(token.customer.organization);
  for (let i = 0; i < number; i++) {
    const code = await actions.transfer(walk, token, token.customer, client);
    if (!code) return;
    if (work !== 'codes') await actions.redeem(walk, code, { remember: work });
    if (work === undefined) token = walk.model.tokens.at(-1) ?? token;
  }
});

/** The refresh tokens that a client uses one after another: 0 is the current one, 1 its predecessor. */
const USES = [[0], [0, 0], [0, 1, 0], [1, 1], [0, 0, 1, 2], [2]];

command('refresh', 16, async (walk, choose) => {
  const session = choose.refreshSession();
  const client = choose.clientOf(session);
  for (const age of choose.one(USES)) {
    const used = session.refreshTokens.at(-1 - age);
    if (used) await actions.refresh(walk, session, used, client);
  }
});

command('sign-in', 6, (walk, choose) => {
  const organization = choose.organization();
  const user = choose.user(organization);
  const remember = !choose.chance(15);
  const link = remember && choose.chance(60);
  return actions.signIn(walk, organization, user, { remember, link, from: choose.perhapsBrowser(80) });
});

// Endings

const REVOKE = '/v2/customer/revoke';

command('forget', 3, async (walk, choose) => {
  const [organization, group, from] = [choose.organization(), choose.one([undefined, 'one', 'two']), choose.browser()];
  const body = { client_id: PUBLIC_SITE, organization_id: organization.id, ...(group && { group_id: group }) };
  const given = await walk.send(
    'forget',
    `${organization.name}, group "${group ?? 'all'}" with ${from.name}`,
    () => browserRules.forget(walk.model, organization, group, from),
    () => walk.service.post('/v2/customer/forget', body, walk.cookieOf(from)),
  );
  if (given && given.result !== given.response.cookies.length > 0)
    throw walk.failure(`the cookies should ${given.result ? '' : 'not '}be cleared`);
});

command('end_sessions', 5, (walk, choose) => {
  const { model, service } = walk;
  const { token, customer } = choose.bearer(40);
  const isOfAgent = !('customer' in token);
  const browsers = choose.chance(50);
  const isOwn = (browser: Browser) => model.leading(browser).some((session) => session.customer === customer);
  const from = isOfAgent || model.browsers.length === 0 ? undefined : choose.mostly(model.browsers, isOwn, 80);
  return walk.send(
    `end_sessions${isOfAgent ? ' by an agent' : ''}${browsers ? ' with browsers' : ''}`,
    `of ${customer.name} with ${token.name} and ${nameOf(from)}`,
    () => {
      if (isOfAgent) model.assertReached(token, customer, { mayBeLinked: true });
      else model.assertValid(token);
      if (!isOfAgent && browsers) browserRules.assertOwn(model, customer, from);
      endings.endAll(model, customer, { browsers });
    },
    () => {
      const body = { browsers, ...(isOfAgent && { customer_id: customer.id }) };
      return service.post(END_SESSIONS, body, { ...bearer(token.text), ...walk.cookieOf(from) });
    },
  );
});

/** A client ends no token of an agent (protocol §4.15), and an agent only one that is valid (§6.9). */
command('end of a token', 16, (walk, choose) => {
  const { model, service } = walk;
  const token = choose.chance(40) ? choose.agentToken(70) : choose.token(70);
  const by = choose.one(['holder', 'client', 'operator'] as const);
  const isOfAgent = !('customer' in token);
  const state = model.isExpired(token) ? 'expired ' : model.whyNotValid(token) ? 'ended ' : '';
  const requests = {
    holder: () => service.send('DELETE', isOfAgent ? '/v2/token' : TOKEN, bearer(token.text)),
    client: () => service.post(REVOKE, { token: token.text, ...agents.credentialsOf(token.client) }),
    operator: () => walk.admin('POST', '/oauth2/revoke', { token: token.text }),
  };
  return walk.send(
    `end of ${isOfAgent ? "an agent's" : 'the'} ${state}token by the ${by}`,
    `${token.name} of ${token.session.name}`,
    () => {
      if (isOfAgent && by === 'holder') model.assertValid(token);
      if (!isOfAgent || by !== 'client') endings.endToken(model, token);
    },
    requests[by],
  );
});

command('revocation of a refresh token', 4, (walk, choose) => {
  const session = choose.refreshSession();
  const [token, client] = [choose.one(session.refreshTokens), choose.clientOf(session, 90)];
  const [isOfAgent, byOperator] = ['agent' in session, choose.chance(50)];
  return walk.send(
    `revocation of ${isOfAgent ? "an agent's" : 'a'} refresh token by the ${byOperator ? 'operator' : 'client'}`,
    `of ${session.name} by ${client.id}`,
    () => {
      if (byOperator || (!isOfAgent && session.client === client)) endings.end(walk.model, session);
    },
    () =>
      byOperator
        ? walk.admin('POST', '/oauth2/revoke', { token })
        : walk.service.post(REVOKE, { token, ...agents.credentialsOf(client) }),
  );
});

command('end of a browser', 2, (walk, choose) => {
  const { model } = walk;
  const session = choose.recent(model.browsers.flatMap((browser) => model.leading(browser)));
  const path = `/admin/customers/${session.customer.id}/browsers/${session.browser?.id}`;
  const end = () => endings.end(model, session);
  return walk.send('end of a browser by the operator', session.name, end, () => walk.admin('DELETE', path));
});

// Agents

command('token of an agent', 3, (walk, choose) => agents.issueToken(walk, choose.organization().agent));

command('sign-in of an agent', 5, async (walk, choose) => {
  const page = await agents.signInAgent(walk);
  const code = choose.chance(80) ? await agents.authorize(walk, page) : undefined;
  if (code) await actions.redeemOfAgent(walk, code);
});

command('authorization code', 4, (walk, choose) => {
  const pages = walk.model.agentSessions.filter(({ kind }) => kind === 'page');
  return agents.authorize(
    walk,
    choose.mostly(pages, (page) => !walk.model.whyNotUsable(page)),
  );
});

/** Often while a code is under way. */
command('change of an agent', 4, async (walk, choose) => {
  const { agent } = choose.organization();
  const page = walk.model.agentSessions.findLast(({ kind, agent: of }) => kind === 'page' && of === agent);
  if (page && choose.chance(60)) await agents.authorize(walk, page);
  const [isDeleted, path, password] = [choose.chance(35), `/admin/agents/${agent.id}`, `${agent.password}!`];
  await walk.send(
    isDeleted ? 'deletion of an agent' : 'new password of an agent',
    agent.organization.name,
    () => endings.endAllOfAgent(walk.model, agent),
    () => (isDeleted ? walk.admin('DELETE', path) : walk.admin('PATCH', path, { password })),
  );
  agent.password = password;
  if (isDeleted) await agents.createAgent(walk, agent.organization);
});

command('agent token grant', 5, (walk, choose) => {
  const { model, service } = walk;
  const [agentToken, kind] = [choose.agentToken(), choose.one(['customer', 'user', 'new customer'] as const)];
  const { organization } = agentToken.session.agent;
  const client = choose.clientFor(organization);
  const customer = kind === 'customer' ? choose.customer(organization) : undefined;
  const user = kind === 'user' ? choose.user(organization) : undefined;
  const body = {
    client_id: client.id,
    ...(customer && { entity_id: customer.id }),
    ...(user && { external_id: user }),
  };
  return walk.grant(
    `agent token grant for a ${kind}`,
    `with ${agentToken.name} of ${user ?? nameOf(customer)}`,
    () => {
      model.assertValid(agentToken);
      if (customer) model.assertReached(agentToken, customer);
      const known = customer ?? (user && model.customerOf(organization, user));
      return { token: model.newToken(client, known || model.newUser(organization, user), agentToken) };
    },
    () => service.post(TOKEN, agentTokenBody(body), bearer(agentToken.text)),
  );
});

command('erasure', 2, (walk, choose) => {
  const { model, service } = walk;
  const token = choose.agentToken();
  const { organization } = token.session.agent;
  const customer = choose.customer(organization);
  return walk.send(
    'erasure',
    `of ${customer.name} with ${token.name}`,
    () => {
      model.assertValid(token);
      if (customer.organization !== organization || customer.gone) return;
      endings.endAll(model, customer, { browsers: true });
      customer.gone = `${model.event} erased ${customer.name}`;
    },
    () => service.post('/v2/customer/erase', { customer_id: customer.id }, bearer(token.text)),
  );
});

// Time passes often by seconds and minutes, and rarely by days

const SHORT_TIMES = [20, 20, 59, 61, 61, 1_200, 3_601];
const LONG_TIMES = [28_801, 28_801, 87_000, 263_000, 2_770_000];

function pass(walk: Walk, seconds: number): void {
  walk.service.clock.advance({ seconds });
  walk.note(`${seconds} s pass`);
}

command('a short time passes', 16, (walk, choose) => pass(walk, choose.one(SHORT_TIMES)));
command('a long time passes', 2, (walk, choose) => pass(walk, choose.one(LONG_TIMES)));

command('purge', 1, async (walk) => {
  walk.note('purge');
  walk.model.event = `step ${walk.log.length} (purge)`;
  endings.purge(walk.model);
  await purge(walk.service);
});
