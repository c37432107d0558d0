import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { parseJsonObject } from '../../src/oauth/request-body.js';

const errorOf = (text: string): OAuthError => {
  try {
    parseJsonObject(text);
  } catch (error) {
    expect(error).toBeInstanceOf(OAuthError);
    return error as OAuthError;
  }
  throw new Error('it was accepted');
};

/** Any text, including property names of prototypes and characters that JSON must escape. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', 'constructor', 'toString', '', '"', '\\', '\\"', '{', '}', ':', ',', '\u2028', '\ud800'),
);
/** Nested names need no escapes, because V8 of Node 24 confuses escaped names in nested objects. */
const innerName = fc.oneof(
  fc.string({ unit: fc.constantFrom(...'aZ0_ {}[]:,é漢') }),
  fc.constantFrom('__proto__', 'toString'),
);
const anyValue = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, depthIdentifier: 'json' },
    fc.constantFrom(null, true, false),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => (Object.is(number, -0) ? 0 : number)),
    anyText,
    fc.array(tie('value'), { maxLength: 4, depthIdentifier: 'json' }),
    fc
      .uniqueArray(fc.tuple(innerName, tie('value')), {
        maxLength: 4,
        selector: ([name]) => name,
        depthIdentifier: 'json',
      })
      .map(Object.fromEntries),
  ),
})).value;
const anyMembers = fc.uniqueArray(fc.tuple(anyText, anyValue), { maxLength: 8, selector: ([name]) => name });

/** A name in JSON. `choices` says for each character whether it is written as an escape. */
const jsonName = (name: string, choices: boolean[]) =>
  `"${name
    .split('')
    .map((character, at) => {
      const plain = JSON.stringify(character).slice(1, -1);
      const code = character.charCodeAt(0).toString(16).padStart(4, '0');
      return choices[at % choices.length] ? `\\u${choices[0] ? code : code.toUpperCase()}` : plain;
    })
    .join('')}"`;

describe('protocol §2.4: a body is one JSON object', () => {
  it('rejects an object with a repeated name, in any position and with any escapes', () => {
    const choices = fc.array(fc.boolean(), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        anyMembers,
        anyText,
        anyValue,
        anyValue,
        choices,
        choices,
        fc.nat(),
        (members, name, one, other, ...rest) => {
          const [first, second, at] = rest;
          const written = members.map(([each, value]) => `${JSON.stringify(each)}:${JSON.stringify(value)}`);
          written.splice(at % (written.length + 1), 0, `${jsonName(name, first)} : ${JSON.stringify(one)}`);
          written.push(`${jsonName(name, second)}:${JSON.stringify(other)}`);
          expect(errorOf(`{${written.join(',')}}`)).toMatchObject({
            code: 'invalid_request',
            status: 400,
            hint: /once/,
          });
        },
      ),
    );
  });

  it('decodes escapes in a name, independently of the objects parsed before', () => {
    for (const before of ['{"x":1,"\\\\":2}', '{"x":1,"\\\\u0061":2}']) parseJsonObject(before);
    expect(parseJsonObject('{"x":1,"\\u0061":2}')).toEqual({ x: 1, a: 2 });
    expect(errorOf('{"a":1,"\\u0061":2}').hint).toMatch(/once/);
  });

  it('accepts a repeated name in a nested object', () => {
    expect(parseJsonObject('{"a":{"b":1,"b":2},"c":[{"d":1,"d":2}]}')).toEqual({ a: { b: 2 }, c: [{ d: 2 }] });
  });

  it('rejects any other text with an OAuthError', () => {
    const almostJson = fc.tuple(anyMembers, fc.nat(), anyText).map(([members, at, text]) => {
      const json = JSON.stringify(Object.fromEntries(members));
      return json.slice(0, at % json.length) + text + json.slice(at % json.length);
    });
    fc.assert(
      fc.property(fc.oneof(anyText, almostJson), (text) => {
        try {
          expect(typeof parseJsonObject(text)).toBe('object');
        } catch (error) {
          expect(error).toBeInstanceOf(OAuthError);
        }
      }),
    );
  });

  it.each([16, 17])('handles an object of %i levels, where the limit is 16', (levels) => {
    const text = `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
    if (levels <= 16) expect(parseJsonObject(text)).toHaveProperty('a');
    else
      expect(errorOf(text)).toMatchObject({
        code: 'invalid_request',
        status: 400,
        hint: expect.stringMatching(/16/),
      });
  });
});
