import { type ExplainedToken, TokenExplanation } from '../introspection/token-explanation.js';
import { type CommandContext, UsageError } from './command-context.js';

/** A longer input is no token, so the command does not read the rest. */
const MAX_INPUT_BYTES = 65_536;

/** `token explain [--json]`. The token is never a parameter, because other users of the machine can read those. */
export async function tokenCommand([action, ...parameters]: string[], context: CommandContext): Promise<number> {
  if (action !== 'explain') throw new UsageError('token: expected explain');
  const [option, ...more] = parameters;
  if ((option !== undefined && option !== '--json') || more.length > 0)
    throw new UsageError('token explain reads the token from standard input, and has no option but --json');
  const token = withoutScheme(await context.readInput(MAX_INPUT_BYTES));
  if (token === '') throw new UsageError('token explain: standard input is empty; pipe a token into the command');
  const explained = await context.withApplication((application) => application.get(TokenExplanation).explain(token));
  context.print(option === '--json' ? toJson(explained) : `${lines(explained).join('\n')}\n`);
  return explained.valid ? 0 : 1;
}

function withoutScheme(input: string): string {
  return input.trim().replace(/^(authorization:\s*)?bearer\s+/i, '');
}

/** Characters outside of ASCII are escaped, because a forged token could control the terminal. */
function toJson(explained: ExplainedToken): string {
  const text = JSON.stringify(explained, undefined, 2).split('\n').map(printable).join('\n');
  return `${text}\n`;
}

function lines({ kind, valid, reason, explanation, ...found }: ExplainedToken): string[] {
  return [
    `kind: ${kind}`,
    `valid here: ${valid ? 'yes' : 'no'}`,
    ...(reason ? [`reason: ${reason}`] : []),
    `explanation: ${explanation}`,
    ...fields(found.claims, ''),
    ...fields(found.unverified_claims, 'unverified '),
    ...fields(found.stored && { ...found.stored, kind: undefined, inactiveReason: undefined }, 'stored '),
    ...(found.corrected ? ['with the text corrected:', ...lines(found.corrected).map((line) => `  ${line}`)] : []),
  ];
}

function fields(values: object | undefined, prefix: string): string[] {
  return Object.entries(values ?? {})
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${prefix}${name}: ${text(name, value)}`);
}

function text(name: string, value: unknown): string {
  if ((name === 'iat' || name === 'exp') && isTime(value)) return `${iso(value * 1000)} (${value})`;
  if (name === 'expiresAt' && isTime(value)) return iso(value);
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

const isTime = (value: unknown): value is number => typeof value === 'number' && Math.abs(value) < 8.64e12;

const iso = (milliseconds: number) => new Date(milliseconds).toISOString();

/** Escapes every character that is not printable ASCII. */
function printable(value: string): string {
  return value.replaceAll(
    /[^\x20-\x7e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
