import type { Random } from './random.js';

/** A marker in generated values. A response may contain it only where the protocol returns a value of the request. */
export const FUZZ_MARKER = 'fzMARKfz';
/** A marker that must never appear in a page unescaped. */
export const MARKUP = '<fz>';
/** A header that must never appear in a response. */
export const INJECTED_HEADER = 'x-fz-injected';

const PROTOTYPE_NAMES = [
  ...['__proto__', 'constructor', 'prototype', 'toString'],
  ...['hasOwnProperty', 'valueOf', '__defineGetter__'],
];

export const STRANGE_TEXTS: readonly string[] = [
  ...['', ' ', '\0', `${FUZZ_MARKER}\0`, '\ufeff', '\u202e', '\ud800', '\udfff\ud800'],
  ...['%00', '%', '%zz', '%2f..%2f', '../../etc/passwd'],
  ...['null', 'undefined', 'NaN', 'true', '0', '-1', '1e400', '9007199254740993', '[object Object]', '{}', '[]'],
  ...["' OR '1'='1", `"; DROP TABLE customer; --`, "\\'", '`', '#{7*7}', '{{7*7}}', '<%= 7*7 %>', '$ne', '*', '?'],
  ...[`"><script>${MARKUP}`, `'${MARKUP}`],
  ...[`\r\n${INJECTED_HEADER}: 1`, `\n${INJECTED_HEADER}: 1`, 'javascript:alert(1)'],
  ...['http://169.254.169.254/', 'file:///etc/passwd', '//evil.example', 'https://acme.example@evil.example/'],
  ...['00000000-0000-0000-0000-000000000000', 'FFFFFFFF-FFFF-7FFF-BFFF-FFFFFFFFFFFF'],
  ...['😀'.repeat(20), 'İıſK', 'a\u0301', 'ａｃｍｅ'],
  ...[`${FUZZ_MARKER}`, `acme-site${FUZZ_MARKER}`, 'acme-site ', 'ACME-SITE', 'acme-site\0', 'cookie,cookie'],
  ...PROTOTYPE_NAMES,
];

const SIZES = [43, 64, 128, 129, 255, 256, 1_000, 1_025, 2_001, 8_193, 15_000];
const NUMBERS = [0, -0, -1, 1, 1.5, 1e21, -1e308, 2 ** 31, 2 ** 53, 2 ** 63];

export function hostileName(random: Random): string {
  return random.chance(0.6) ? random.pick(PROTOTYPE_NAMES) : random.pick(STRANGE_TEXTS);
}

export function hostileText(random: Random): string {
  if (random.chance(0.8)) return random.pick(STRANGE_TEXTS);
  return random
    .pick([FUZZ_MARKER, 'a', '0', '€', '\0', '%41', '\\', '"', '../'])
    .repeat(random.pick(SIZES))
    .slice(0, random.pick(SIZES));
}

export function hostileValue(random: Random): unknown {
  const kind = random.weighted({ text: 5, number: 2, null: 1, boolean: 1, array: 2, object: 2, deep: 1 });
  if (kind === 'text') return hostileText(random);
  if (kind === 'number') return random.pick(NUMBERS);
  if (kind === 'null') return null;
  if (kind === 'boolean') return random.chance(0.5);
  if (kind === 'array') return Array.from({ length: random.pick([0, 1, 2, 300]) }, () => random.pick(STRANGE_TEXTS));
  if (kind === 'object') return withOwn(hostileName(random), random.pick(STRANGE_TEXTS));
  return nested(random.pick([5, 14, 15, 16, 17, 100, 2_000]), random.chance(0.5));
}

const TEXT_MUTATIONS = {
  ...{ flip: 4, cut: 2, grow: 2, double: 1, case: 1 },
  ...{ insert: 2, drop: 1, hostile: 4, encoded: 1 },
};

/** A text that differs slightly from a valid one. */
export function mutatedText(text: string, random: Random): string {
  const at = random.below(text.length + 1);
  const kind = random.weighted(TEXT_MUTATIONS);
  if (kind === 'flip') return `${text.slice(0, at)}${flipped(text[at] ?? 'a', random)}${text.slice(at + 1)}`;
  if (kind === 'cut') return text.slice(0, at);
  if (kind === 'grow') return text + random.pick(['a', '0', ' ', '=', '/', '.', '\0', '%00', '#', '?']);
  if (kind === 'double') return text + text;
  if (kind === 'case') return text === text.toUpperCase() ? text.toLowerCase() : text.toUpperCase();
  if (kind === 'insert') return text.slice(0, at) + random.pick(STRANGE_TEXTS) + text.slice(at);
  if (kind === 'drop') return text.slice(0, at) + text.slice(at + 1);
  if (kind === 'encoded') return encodeURIComponent(wellFormed(text));
  return hostileText(random);
}

export function flipped(character: string, random: Random): string {
  return String.fromCharCode(character.charCodeAt(0) ^ (1 << random.below(7)));
}

/** An object with one own property. An object literal would set the prototype if the name is `__proto__`. */
function withOwn(name: string, value: unknown): object {
  return Object.defineProperty({}, name, { value, enumerable: true });
}

function nested(depth: number, inArrays: boolean): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level++) value = inArrays ? [value] : { a: value };
  return value;
}

/** The text with lone surrogates replaced, because UTF-8 cannot encode them. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}
