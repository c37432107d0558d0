import type { INestApplicationContext } from '@nestjs/common';
import { TokenExplanation } from '../../discovery/introspection/token-explanation.js';
import { type CommandContext, expectParameters, UsageError } from './command-context.js';

/** A longer input is no token, so the command does not read the rest. */
const MAX_INPUT_BYTES = 16_384;

/** `token explain`. The token is never a parameter, because other users of the machine can read those. */
export async function tokenCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  if (action !== 'explain') throw new UsageError('token: expected explain');
  expectParameters(parameters, 0);
  const token = (await context.readInput(MAX_INPUT_BYTES)).trim().replace(/^(authorization:\s*)?bearer\s+/i, '');
  if (token === '') throw new UsageError('token explain: standard input is empty; pipe a token into the command');
  const explain = (application: INestApplicationContext) => application.get(TokenExplanation).explain(token);
  const explained = await context.withApplication(explain, { migrates: false });
  context.print(`${JSON.stringify(explained, undefined, 2)}\n`);
  return explained.valid ? 0 : 1;
}
