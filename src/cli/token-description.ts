import type { ExplainedToken } from '../introspection/token-explanation.js';

/** A token as the text that `token explain` prints: one `name: value` per line. */
export function describeToken(explained: ExplainedToken): string {
  return lines(explained)
    .map((line) => `${line}\n`)
    .join('');
}

/** Characters outside of ASCII are escaped, because a forged token could control the terminal. */
export function toJson(explained: ExplainedToken): string {
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

/** Times are printed as ISO 8601 in UTC. */
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
