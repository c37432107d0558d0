import { TokenExplanation } from '../introspection/token-explanation.js';
import type { CommandContext } from './command-context.js';
import { describeToken, toJson } from './token-description.js';
import { UsageError } from './usage-error.js';

/** A longer input is no token, so the command does not read the rest. */
const MAX_INPUT_BYTES = 65_536;

/**
 * `token explain [--json]`: says what the token on standard input is, whether it is valid here, and why not. The exit
 * code is 1 if it is not valid. The token is never a parameter, because other users of the machine can read those.
 */
export async function tokenCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  if (action !== 'explain') throw new UsageError('token: expected explain');
  const [option, ...more] = parameters;
  if ((option !== undefined && option !== '--json') || more.length > 0)
    throw new UsageError('token explain reads the token from standard input, and has no option but --json');
  const token = withoutScheme(await context.readInput(MAX_INPUT_BYTES));
  if (token === '') throw new UsageError('token explain: standard input is empty; pipe a token into the command');
  const explained = await context.withApplication((application) => application.get(TokenExplanation).explain(token));
  context.print(option === '--json' ? toJson(explained) : describeToken(explained));
  return explained.valid ? 0 : 1;
}

/** The token of a pasted header `Authorization: Bearer TOKEN`. */
function withoutScheme(input: string): string {
  return input.trim().replace(/^(authorization:\s*)?bearer\s+/i, '');
}
