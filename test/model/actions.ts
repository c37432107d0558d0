import { exchangeCode, pkce, refresh as refreshAsClient } from '../support/agent-tokens.js';
import { JWT_BEARER } from '../support/assertion-issuer.js';
import { bearer } from '../support/authorization-headers.js';
import { cookieBody, TOKEN } from '../support/cookie-grant.js';
import { PUBLIC_SITE } from '../support/test-registry.js';
import { ageRedemption, redeemBody, TRANSFER } from '../support/transfers.js';
import { credentialsOf } from './agents.js';
import * as browserRules from './browser-rules.js';
import type { AgentSession, AgentToken, Browser, Client, Customer, Organization, Session, Token } from './things.js';
import * as transfers from './transfers.js';
import { nameOf, type Walk } from './walk.js';

/** The requests that several commands send. Each changes the model as the service should change. */

export async function visit(walk: Walk, client: Client, organization: Organization, group: string, from?: Browser) {
  const { model, service } = walk;
  const path = group === '' ? TOKEN : `/v2/customer/${organization.id}/${group}/token`;
  const body = cookieBody({ client_id: client.id, organization_id: organization.id });
  await walk.grant(
    'visit',
    `with ${nameOf(from)} in ${organization.name}, group "${group}"`,
    () => {
      const { browser, session } = browserRules.visit(model, organization, group, from);
      return { token: model.newToken(client, session), browser };
    },
    () => service.post(path, body, walk.cookieOf(from)),
  );
}

export async function transfer(walk: Walk, parent: Token | AgentToken, customer: Customer, client: Client) {
  const { model, service } = walk;
  const isOfAgent = !('customer' in parent);
  const { verifier, asked } = pkce();
  const of = isOfAgent ? { bearer_type: 'agent', customer_id: customer.id } : { bearer_type: 'customer' };
  const given = await walk.send(
    isOfAgent ? 'transfer by an agent' : 'transfer',
    `of ${customer.name} with ${parent.name} for ${client.id}`,
    () => transfers.transfer(model, customer, parent, client),
    () => service.post(TRANSFER, { ...of, client_id: client.id, ...asked }, bearer(parent.text)),
  );
  if (!given) return undefined;
  walk.count(`a chain of ${given.result.depth}`);
  return Object.assign(given.result, { code: given.response.body.identity_transfer_token as string, verifier });
}

/** How a second device redeems a transfer token. */
export interface Redemption {
  remember?: 'browser' | 'refresh_token' | undefined;
  /** Another client than that of the transfer token. */
  client?: Client | undefined;
  replace?: boolean;
  from?: Browser | undefined;
}

export async function redeem(walk: Walk, code: Session, redemption: Redemption = {}): Promise<void> {
  const { model, service } = walk;
  const { remember, client = code.client as Client, from } = redemption;
  const isBrowser = remember === 'browser';
  const replace = isBrowser && redemption.replace === true;
  await ageCode(walk, code);
  const more = { code_verifier: code.verifier, ...(remember && { remember }), ...(replace && { replace }) };
  const headers = isBrowser ? { origin: client.origin, ...walk.cookieOf(from) } : {};
  const body = await walk.grant(
    code.kind !== 'code' ? 'replay' : `redemption with remember: ${remember ?? 'nothing'}${replace ? ', replace' : ''}`,
    `of ${code.name} of ${code.customer.name} by ${client.id} with ${nameOf(from)}`,
    () => {
      transfers.assertRedeemable(model, code, client);
      const browser = isBrowser ? browserRules.remember(model, code, replace, from) : undefined;
      if (remember === 'refresh_token') transfers.redeemForRefreshToken(model, code);
      if (!remember) transfers.redeem(model, code);
      return { token: model.newToken(client, code), browser };
    },
    () => service.post(TOKEN, redeemBody(code.code, { client_id: client.id, ...more }), headers),
  );
  if (body?.refresh_token) code.refreshTokens.push(body.refresh_token);
}

export async function redeemOfAgent(walk: Walk, code: AgentSession, client = code.client as Client): Promise<void> {
  const { model, service } = walk;
  await ageCode(walk, code);
  const body = await walk.grant(
    `${code.kind === 'code' ? 'redemption' : 'replay'} of an authorization code`,
    `${code.name} by ${client.id}`,
    () => {
      transfers.assertRedeemable(model, code, client);
      transfers.redeemForRefreshToken(model, code);
      return { token: model.newAgentToken(code) };
    },
    () => exchangeCode(service, code.code, { ...credentialsOf(client), code_verifier: code.verifier }),
  );
  if (body) code.refreshTokens.push(body.refresh_token);
}

/** A second use of a code counts as a replay 2 s after the first one, by the clock of the database. */
async function ageCode({ service }: Walk, { kind, gone, code }: Session | AgentSession): Promise<void> {
  if (kind !== 'code' && !gone) await ageRedemption(service, code, 3);
}

/** Uses a refresh token of a customer or an agent. */
export async function refresh(
  walk: Walk,
  session: Session | AgentSession,
  used: string,
  client = session.client as Client,
) {
  const { model, service } = walk;
  const { refreshTokens } = session;
  const age = refreshTokens.length - 1 - refreshTokens.indexOf(used);
  const isOfAgent = 'agent' in session;
  const body = await walk.grant(
    `${['refresh', 'retry'][age] ?? 'reuse'}${isOfAgent ? ' of an agent' : ''}`,
    `the refresh token of ${session.name} before the last ${age} for ${client.id}`,
    () => {
      transfers.refresh(model, session, used, client);
      return {
        token: isOfAgent ? model.newAgentToken(session) : model.newToken(client, session),
      };
    },
    () =>
      isOfAgent
        ? refreshAsClient(service, used, credentialsOf(client))
        : service.post(TOKEN, { grant_type: 'refresh_token', client_id: client.id, refresh_token: used }),
  );
  if (!body) return;
  const next: string = body.refresh_token;
  if (age === 0 ? refreshTokens.includes(next) : next !== refreshTokens.at(-1))
    throw walk.failure('the refresh token of the response is not the one that the model expects');
  if (age === 0) refreshTokens.push(next);
}

export async function signIn(
  walk: Walk,
  organization: Organization,
  user: string,
  { remember, link, from }: { remember: boolean; link: boolean; from?: Browser | undefined },
) {
  const { model, service, clients } = walk;
  const client = clients.find(({ id }) => id === PUBLIC_SITE) as Client;
  const known = model.customerOf(organization, user);
  const assertion = await walk.users.assert(model.now, { sub: user, aud: organization.id });
  const more = { ...(remember && { remember: 'browser' }), ...(link && { link: 'browser' }) };
  const body = { grant_type: JWT_BEARER, client_id: client.id, organization_id: organization.id, assertion, ...more };
  await walk.grant(
    `sign-in of a ${known ? 'known' : 'new'} user${remember ? ' with remember' : ''}${link ? ' and link' : ''}`,
    `${user} with ${nameOf(from)}`,
    () => {
      if (!remember) return { token: model.newToken(client, known ?? model.newUser(organization, user)) };
      const { browser, session } = browserRules.signIn(model, organization, user, { from, link });
      return { token: model.newToken(client, session), browser };
    },
    () => service.post(TOKEN, body, { origin: client.origin, ...walk.cookieOf(from) }),
  );
}
