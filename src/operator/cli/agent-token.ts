import { parseArgs } from 'node:util';
import { AgentTokenIssuer, grantedScope } from '../../agent-auth/agent-token-issuer.js';
import { Configuration } from '../../platform/configuration/configuration.js';
import { withoutCredentials } from '../../platform/configuration/database-url.js';
import { Agents } from '../../registry/agents.js';
import { Registry } from '../../registry/registry.js';
import { type CommandContext, UsageError } from './command-context.js';

/** `agent-token --email E --client-id C --scope "S …"`: prints an agent token like the one of a sign-in. */
export async function agentTokenCommand(parameters: string[], context: CommandContext): Promise<number> {
  const { email, clientId, scope } = options(parameters);
  const token = await context.withApplication(
    async (application) => {
      const agent = await application.get(Agents).byEmail(email);
      if (!agent) {
        // without the DATA_DIR or DATABASE_URL of the service, the command uses another, usually empty SQLite database
        const database = withoutCredentials(application.get(Configuration).DATABASE_URL);
        throw new Error(
          `--email: unknown agent in the database ${database}; set DATABASE_URL or DATA_DIR as the service does`,
        );
      }
      const client = application.get(Registry).client(clientId);
      if (!client) throw new Error('--client-id: unknown client');
      if (!client.usableIn(agent.organizationId)) throw new Error('--client-id: belongs to another organization');
      const granted = grantedScope(scope, client.scopes, agent.scopes);
      if (granted === '') throw new Error('--scope: the client and the agent have no requested scope in common');
      const { id: agentId, organizationId, generation } = agent;
      const grant = { agentId, organizationId, clientId, scope: granted };
      // a service with another AUTH_URL or PORT rejects the token
      context.notify(`issuer: ${application.get(Configuration).AUTH_URL}\n`);
      return (await application.get(AgentTokenIssuer).issue(grant, generation)).access_token;
    },
    { migrates: false },
  );
  context.print(`${token}\n`);
  return 0;
}

function options(parameters: string[]): { email: string; clientId: string; scope: string | undefined } {
  try {
    const optionTypes = {
      email: { type: 'string' },
      'client-id': { type: 'string' },
      scope: { type: 'string' },
    } as const;
    const { email, 'client-id': clientId, scope } = parseArgs({ args: parameters, options: optionTypes }).values;
    if (email === undefined || clientId === undefined) throw new Error('--email and --client-id: required');
    return { email, clientId, scope };
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}
