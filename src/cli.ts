import { agentTokenCommand } from './cli/agent-token.js';
import { keysCommand } from './cli/keys.js';
import { migrateCommand } from './cli/migrate.js';
import { purgeCommand } from './cli/purge.js';
import { registryCommand } from './cli/registry.js';
import { UsageError } from './cli/usage-error.js';

/** A command gets its arguments and resolves to its exit code; stdout is for its result alone. */
const COMMANDS: Record<string, (parameters: string[]) => Promise<number>> = {
  'agent-token': agentTokenCommand,
  keys: keysCommand,
  migrate: migrateCommand,
  purge: purgeCommand,
  registry: registryCommand,
};

const USAGE = `usage: node dist/cli.js COMMAND

  migrate              bring the database's schema up to date
  migrate --check      exit 1 when migrations are pending
  registry apply FILE  create and change what a registry file lists
  registry export      print the registry as YAML, without secrets
  purge                delete what has expired, in small batches
  keys generate        print a private JWK Set for SIGNING_KEYS_FILE
  keys rotate FILE     add a key that signs in 15 minutes; the others expire with the last token they sign
  keys list FILE       what each key is for, and until when
  keys retire FILE KID take a key out, which ends its tokens
  agent-token --email E --client-id C --scope "S …"
                       print one agent access token
`;

const [name = '', ...parameters] = process.argv.slice(2);
process.exitCode = await run(name, parameters);

async function run(name: string, parameters: string[]): Promise<number> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  try {
    if (!command) throw new UsageError(name ? `no such command: ${name}` : 'which command?');
    return await command(parameters);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    if (!(error instanceof UsageError)) return 1;
    process.stderr.write(USAGE);
    return 2;
  }
}
