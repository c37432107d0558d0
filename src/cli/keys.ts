import { generateKey } from '../access-token/key-set.js';
import { Clock } from '../platform/clock.js';
import { expectParameters, UsageError } from './usage-error.js';

/** `keys generate`: a private JWK Set on stdout; needs no database and no configuration. */
export async function keysCommand([action, ...parameters]: string[]): Promise<number> {
  if (action !== 'generate') throw new UsageError('keys what?');
  expectParameters(parameters, 0);
  process.stdout.write(`${JSON.stringify({ keys: [generateKey(new Clock().seconds())] }, undefined, 2)}\n`);
  return 0;
}
