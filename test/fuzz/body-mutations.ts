import { FUZZ_MARKER, hostileName, hostileText, hostileValue, mutatedText, wellFormed } from './hostile-values.js';
import type { Random } from './random.js';

/** Parameters with their values. A list, because a name may be repeated. */
export type Fields = [name: string, value: unknown][];

const KINDS = {
  ...{ drop: 3, value: 6, text: 6, double: 3, rename: 2 },
  ...{ add: 3, huge: 1, wrap: 2, none: 1, shuffle: 1 },
};

/** Applies one mutation to the parameters, and returns its description. A name may be repeated afterwards. */
export function mutateFields(fields: Fields, random: Random): string {
  const kind = random.weighted(KINDS);
  const index = random.below(fields.length);
  const field = fields[index];
  if (!field || kind === 'add') {
    fields.push([random.chance(0.5) ? hostileName(random) : `fz${random.below(9)}`, hostileValue(random)]);
    return 'add a parameter';
  }
  const [name, value] = field;
  if (kind === 'drop') fields.splice(index, 1);
  else if (kind === 'value') field[1] = hostileValue(random);
  else if (kind === 'text') field[1] = mutatedText(typeof value === 'string' ? value : JSON.stringify(value), random);
  else if (kind === 'double') fields.push([name, random.chance(0.5) ? value : hostileText(random)]);
  else if (kind === 'rename') field[0] = random.chance(0.4) ? hostileName(random) : mutatedText(name, random);
  else if (kind === 'huge') field[1] = FUZZ_MARKER.repeat(random.pick([100, 500, 1_500]));
  else if (kind === 'wrap')
    field[1] = random.pick<(inner: unknown) => unknown>([
      (v) => [v],
      (v) => ({ value: v }),
      (v) => JSON.stringify(v),
      (v) => [v, v],
      (v) => ({ [name]: v }),
    ])(value);
  else if (kind === 'none') field[1] = null;
  else fields.reverse();
  return `${kind} ${name}`;
}

/** Encodes parameters as JSON, including repeated names. Some names are written with a Unicode escape. */
export function jsonOf(fields: Fields, random: Random): string {
  return `{${fields.map(([name, value]) => `${nameOf(name, random)}:${JSON.stringify(value) ?? 'null'}`).join(',')}}`;
}

function nameOf(name: string, random: Random): string {
  const [first = ''] = name;
  const isEscaped = first.length === 1 && random.chance(0.03);
  return isEscaped
    ? `"\\u${first.charCodeAt(0).toString(16).padStart(4, '0')}${JSON.stringify(name.slice(1)).slice(1)}`
    : JSON.stringify(name);
}

/** Encodes parameters as a form or a query. Some values have invalid percent-encoding. */
export function formOf(fields: Fields, random: Random): string {
  const text = (value: unknown) => wellFormed(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
  const encoded = (value: unknown) =>
    random.chance(0.02)
      ? text(value).replaceAll('%', '%25').replaceAll(/[\s&]/g, '%')
      : encodeURIComponent(text(value));
  return fields.map(([name, value]) => `${encoded(name)}=${encoded(value)}`).join('&');
}

/** Applies one mutation to a whole body, and returns the new body and a description of the mutation. */
export function mutateBytes(body: Buffer, random: Random): [body: Buffer, note: string] {
  const text = body.toString();
  const at = random.below(body.length);
  const mutations: Record<string, () => Buffer | string> = {
    nothing: () => '',
    cut: () => body.subarray(0, at),
    'in an array': () => `[${text}]`,
    'in quotes': () => JSON.stringify(text),
    twice: () => text + text,
    'with a byte order mark': () => `\ufeff${text}`,
    'in UTF-16': () => Buffer.from(text, 'utf16le'),
    'no UTF-8': () =>
      Buffer.concat([
        body.subarray(0, at),
        Buffer.from(random.pick([[0x80], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xff]])),
        body.subarray(at),
      ]),
    'a bit flipped': () => flippedBit(body, random),
    'random bytes': () => Buffer.from(Array.from({ length: random.below(200) }, () => random.below(256))),
    'a scalar': () => JSON.stringify(hostileValue(random)) ?? 'null',
    deep: () =>
      '{"a":'.repeat(random.pick([15, 16, 17, 2_000])) +
      random.pick(['', '1']) +
      '}'.repeat(random.pick([0, 17, 2_000])),
    'many names': () => `{${Array.from({ length: 1_000 }, (_, each) => `"a${each}":0`).join(',')}}`,
    '16 KiB and more': () => text.padEnd(random.pick([16_383, 16_384, 16_385, 17_000, 40_000])),
    'a comment': () => `/**/${text}`,
  };
  const note = random.pick(Object.keys(mutations));
  return [Buffer.from(mutations[note]?.() as string), `body: ${note}`];
}

export function flippedBit(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes);
  const at = random.below(copy.length);
  if (copy.length > 0) copy[at] = (copy[at] as number) ^ (1 << random.below(8));
  return copy;
}
