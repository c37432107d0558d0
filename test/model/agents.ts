import { randomUUID } from 'node:crypto';
import { AS_BACKEND, pkce } from '../support/agent-tokens.js';
import { AgentBrowser, FOR_CODE, type Query, redirected } from '../support/authorization-page.js';
import { issueAgentToken } from '../support/operator-commands.js';
import { ACME_BACKEND, PUBLIC_SITE } from '../support/test-registry.js';
import type { TestResponse } from '../support/test-service.js';
import { TOKEN_SECONDS } from './model.js';
import { type Agent, type AgentSession, type Client, Rejection } from './things.js';
import type { Walk } from './walk.js';

/** How agents come about, and their sessions (protocol §3.11). */

const SCOPES = ['customers:own', 'customers:manage'];
const PAGE_SECONDS = 28_800;
const CODE_SECONDS = 300;

export const credentialsOf = ({ id }: Client) =>
  id === ACME_BACKEND ? AS_BACKEND : { client_id: id, client_secret: undefined };

/** An agent with a token, in place of the one of the organization. */
export async function createAgent(walk: Walk, organization: Agent['organization']): Promise<void> {
  const login = { email: `${randomUUID()}@agents.example`, password: 'a password of the agent' };
  const entry = { ...login, name: organization.name, organization_id: organization.id, scopes: SCOPES };
  const { body } = await walk.admin('POST', '/admin/agents', entry);
  organization.agent = { ...login, id: body.id, organization };
  await issueToken(walk, organization.agent);
}

/** A token by the command line. */
export async function issueToken(walk: Walk, agent: Agent): Promise<void> {
  const client = walk.clients.find(({ id }) => id === PUBLIC_SITE) as Client;
  const token = walk.model.newAgentToken(walk.model.newAgentSession('token', agent, TOKEN_SECONDS, { client }));
  const options = { email: agent.email, clientId: client.id, scope: SCOPES.join(' ') };
  walk.note('token of an agent', `${token.name} for ${agent.organization.name}`);
  walk.take(token, { access_token: await issueAgentToken(walk.service, options) });
}

/** The agent of the backend's organization signs in at the page. */
export async function signInAgent(walk: Walk): Promise<AgentSession> {
  const [{ agent }] = walk.organizations;
  const page = new AgentBrowser(walk.service);
  await page.signIn({ email: agent.email, password: agent.password });
  const session = walk.model.newAgentSession('page', agent, PAGE_SECONDS, { page });
  walk.note('sign-in of an agent', session.name);
  return session;
}

/** The response of the page, which does not ask. With an error, its status counts as 400. */
export async function askPage({ page }: AgentSession, parameters: Query): Promise<TestResponse> {
  const response = await (page as AgentBrowser).open({ ...parameters, prompt: 'none' });
  const { parameters: body } = redirected(response);
  return { ...response, status: body.error ? 400 : 200, body };
}

export async function authorize(walk: Walk, page: AgentSession): Promise<AgentSession | undefined> {
  const { model, agentClients } = walk;
  const { verifier, asked } = pkce();
  const given = await walk.send(
    'authorization code',
    `at the page of ${page.name}`,
    () => {
      const why = model.whyNotUsable(page);
      if (why) throw new Rejection(400, 'login_required', why);
      return model.newAgentSession('code', page.agent, CODE_SECONDS, { client: agentClients[0], verifier });
    },
    () => askPage(page, { ...FOR_CODE, ...asked }),
  );
  return given && Object.assign(given.result, { code: given.response.body.code as string });
}
