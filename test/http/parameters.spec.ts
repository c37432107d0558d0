import {
  ArrayMaxSize,
  Equals,
  IsArray,
  IsBoolean,
  IsIn,
  IsInt,
  IsNumber,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  Max,
  MaxLength,
  Min,
  ValidateBy,
} from 'class-validator';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseForm, parseQuery } from '../../src/oauth/form.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { Optional, optionalString, readParameters, requiredString } from '../../src/oauth/parameters.js';

const IsOdd = () =>
  ValidateBy({
    name: 'isOdd',
    validator: { validate: (value) => value === 'odd', defaultMessage: () => 'must be odd' },
  });

class Parameters {
  @IsString()
  text!: string;

  @Matches(/^[a-z]+$/, { message: 'must be the request_id of the start' })
  request_id!: string;

  @Optional()
  @IsIn(['a', 'b'])
  word?: string;

  @Optional()
  @IsString()
  @MaxLength(3)
  short?: string;

  @Optional()
  @IsInt()
  @Min(1)
  @Max(9)
  whole?: number;

  @Optional()
  @IsNumber()
  fraction?: number;

  @IsOptional()
  @IsBoolean()
  flag?: boolean;

  @Optional()
  @IsArray()
  @ArrayMaxSize(2)
  @IsString({ each: true })
  list?: string[];

  @Optional()
  @IsString({ each: true })
  names?: string[];

  @Optional()
  @IsObject()
  nested?: object;

  @Optional()
  @Equals(7)
  seven?: number;

  @Optional()
  @IsOdd()
  odd?: string;
}

const GOOD = { text: 'x', request_id: 'abc' };

describe('the hint for a parameter of a body class', () => {
  it.each<[object, string]>([
    [{ text: undefined }, 'text: required'],
    [{ request_id: undefined }, 'request_id: required'],
    [{ text: '' }, 'text: required'],
    [{ request_id: '' }, 'request_id: required'],
    [{ word: '' }, 'word: must not be empty'],
    [{ short: '' }, 'short: must not be empty'],
    [{ whole: '' }, 'whole: must not be empty'],
    [{ flag: '' }, 'flag: must not be empty'],
    [{ odd: '' }, 'odd: must not be empty'],
    [{ text: '', short: '' }, 'text: required'],
    [{ text: null }, 'text: must be a string'],
    [{ text: 7 }, 'text: must be a string'],
    [{ request_id: true }, 'request_id: must be a string'],
    [{ request_id: ['abc'] }, 'request_id: must be a string'],
    [{ word: 7 }, 'word: must be a string'],
    [{ word: null }, 'word: must be a string'],
    [{ short: {} }, 'short: must be a string'],
    [{ whole: '7' }, 'whole: must be an integer'],
    [{ fraction: '7' }, 'fraction: must be a number'],
    [{ flag: 'true' }, 'flag: must be a boolean'],
    [{ list: 'x' }, 'list: must be an array'],
    [{ names: 7 }, 'names: must be an array'],
    [{ nested: [] }, 'nested: must be an object'],
    [{ request_id: 'ABC' }, 'request_id: must be the request_id of the start'],
    [{ word: 'c' }, 'word: must be one of the following values: a, b'],
    [{ short: 'long' }, 'short: must be shorter than or equal to 3 characters'],
    [{ whole: 10 }, 'whole: must not be greater than 9'],
    [{ names: [7] }, 'names: each value in names must be a string'],
    [{ seven: 8 }, 'seven: must be equal to 7'],
    [{ odd: 7 }, 'odd: must be odd'],
  ])('for %j is "%s"', (parameters, hint) => {
    expect(hintOf(() => readParameters(Parameters, { ...GOOD, ...parameters }))).toBe(hint);
  });

  it.each([{}, { word: 'a' }, { short: 'abc', whole: 9 }, { flag: false, list: [''] }])(
    'is absent for %j',
    (parameters) => {
      expect(readParameters(Parameters, { ...GOOD, ...parameters })).toMatchObject({ ...GOOD, ...parameters });
    },
  );

  it.each<[unknown, string | undefined, string | undefined]>([
    [undefined, 'x: required', undefined],
    ['', 'x: required', 'x: must not be empty'],
    [null, 'x: must be a string', 'x: must be a string'],
    [7, 'x: must be a string', 'x: must be a string'],
    ['text', undefined, undefined],
  ])('is the same for a parameter that is read before the body class is known: %j', (value, required, optional) => {
    expect(hintOf(() => requiredString('x', value))).toBe(required);
    expect(hintOf(() => optionalString('x', value))).toBe(optional);
  });
});

describe('the parameters of a form and of a query', () => {
  it.each([
    ['a=1&b=&c=2', { a: '1', c: '2' }],
    ['a=&b', {}],
    ['a=+&b=%00', { a: ' ', b: '\0' }],
    ['=1', { '': '1' }],
    ['', {}],
  ])('do not include parameters without a value: %s', (text, expected) => {
    expect({ ...parseForm(text) }).toEqual(expected);
    expect({ ...parseQuery(`/path?${text}`) }).toEqual(expected);
  });

  it.each(['a=1&a=1', 'a=&a=1', 'a=1&a=', 'a&a', '__proto__=1&__proto__='])('must not be repeated: %s', (text) => {
    expect(hintOf(() => parseForm(text))).toBe('body: a parameter is given more than once');
    expect(hintOf(() => parseQuery(`?${text}`))).toBe('query: a parameter is given more than once');
  });

  it('are the non-empty parameters of the URL Standard, for any text', () => {
    const pieces = fc.constantFrom('a', 'b', '=', '&', '%', '%3D', '+', '__proto__', 'ä', '?', '#');
    fc.assert(
      fc.property(fc.array(pieces), (parts) => {
        const text = parts.join('');
        const all = [...new URLSearchParams(text)];
        const isRepeated = new Set(all.map(([name]) => name)).size < all.length;
        if (isRepeated) expect(() => parseForm(text)).toThrow(OAuthError);
        else expect(Object.entries(parseForm(text))).toEqual(all.filter(([, value]) => value !== ''));
      }),
    );
  });

  it('are empty for a URL without a query', () => {
    expect({ ...parseQuery('/path') }).toEqual({});
  });
});

function hintOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_request', status: 400 });
    return (error as OAuthError).hint;
  }
}
