import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJsonObject } from '../../src/oauth/json-object.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';

const refusalOf = (text: string): OAuthError => {
  try {
    parseJsonObject(text);
  } catch (error) {
    expect(error).toBeInstanceOf(OAuthError);
    return error as OAuthError;
  }
  throw new Error('it was accepted');
};

/** Any text, among them names that prototypes have and characters that JSON must escape. */
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', 'constructor', 'toString', '', '"', '\\', '\\"', '{', '}', ':', ',', '\u2028', '\ud800'),
);
/** Within values no name needs an escape: V8 of Node 24 confuses those. */
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

/** A name as JSON, each of its characters as it is or as an escape, by the digits of a number. */
const spelt = (name: string, choices: boolean[]) =>
  `"${name
    .split('')
    .map((character, at) => {
      const plain = JSON.stringify(character).slice(1, -1);
      const code = character.charCodeAt(0).toString(16).padStart(4, '0');
      return choices[at % choices.length] ? `\\u${choices[0] ? code : code.toUpperCase()}` : plain;
    })
    .join('')}"`;

describe('protocol §2.4: a body is one JSON object', () => {
  it('any object survives JSON.stringify and back, with its own members only', () => {
    fc.assert(
      fc.property(anyMembers, fc.constantFrom(undefined, 2, '\t'), (members, indent) => {
        const object = Object.fromEntries(members);
        const parsed = parseJsonObject(JSON.stringify(object, undefined, indent));
        expect(Object.keys(parsed).sort()).toEqual(members.map(([name]) => name).sort());
        for (const [name, value] of members) expect(parsed[name]).toEqual(value);
        expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
      }),
    );
  });

  it('any object with a repeated name, in whatever spelling and place, is an invalid request', () => {
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
          written.splice(at % (written.length + 1), 0, `${spelt(name, first)} : ${JSON.stringify(one)}`);
          written.push(`${spelt(name, second)}:${JSON.stringify(other)}`);
          expect(refusalOf(`{${written.join(',')}}`)).toMatchObject({
            code: 'invalid_request',
            status: 400,
            hint: /once/,
          });
        },
      ),
    );
  });

  it('a name is the one that its escapes spell, whatever was read before', () => {
    for (const before of ['{"x":1,"\\\\":2}', '{"x":1,"\\\\u0061":2}']) parseJsonObject(before);
    expect(parseJsonObject('{"x":1,"\\u0061":2}')).toEqual({ x: 1, a: 2 });
    expect(refusalOf('{"a":1,"\\u0061":2}').hint).toMatch(/once/);
  });

  it('a name that is repeated in an object within is none of ours', () => {
    expect(parseJsonObject('{"a":{"b":1,"b":2},"c":[{"d":1,"d":2}]}')).toEqual({ a: { b: 2 }, c: [{ d: 2 }] });
  });

  it('any other text is refused by an OAuthError', () => {
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

  it('any JSON that is no object is an invalid request', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.array(anyValue), fc.double({ noNaN: true, noDefaultInfinity: true }), anyText, fc.boolean()),
        (value) => {
          expect(refusalOf(JSON.stringify(value)).hint).toMatch(/object/);
        },
      ),
    );
    expect(refusalOf('null').hint).toMatch(/object/);
  });

  it.each(['', ' ', '{', '{"a":1,}', "{'a':1}", '{a:1}', '{"a":01}', '{"a":1}x', 'undefined', '\ufeff{}'])(
    'what is no JSON is an invalid message: %j',
    (text) => {
      expect(refusalOf(text)).toMatchObject({ code: 'invalid_request', status: 400, description: 'Invalid message' });
    },
  );

  it.each([16, 17, 20_000])('%i levels are accepted up to 16', (levels) => {
    const text = `${'{"a":'.repeat(levels - 1)}{}${'}'.repeat(levels - 1)}`;
    if (levels <= 16) expect(parseJsonObject(text)).toHaveProperty('a');
    else
      expect(refusalOf(text)).toMatchObject({
        code: 'invalid_request',
        status: 400,
        hint: expect.stringMatching(/16/),
      });
  });

  it('brackets, colons and quotes within texts count for nothing', () => {
    const object = { a: '{[:"\\', 'b":{': '}]', c: ['[', '\\'] };
    expect(parseJsonObject(JSON.stringify(object))).toEqual(object);
  });
});
