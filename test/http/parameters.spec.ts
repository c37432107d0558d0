import { type Type } from '@nestjs/common';
import {
  ArrayMaxSize,
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
  Validate,
  ValidateBy,
  ValidateNested,
  ValidatorConstraint,
  type ValidatorConstraintInterface,
  validateSync,
} from 'class-validator';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/discovery/openapi/schemas.js';
import { AgentTokenBody } from '../../src/grants/agent-token/agent-token.grant.js';
import { CookieBody } from '../../src/grants/cookie/cookie.grant.js';
import { IdentityTokenBody } from '../../src/grants/identity-token/identity-token.grant.js';
import { parseForm, parseQuery } from '../../src/oauth/form.js';
import { OAuthError } from '../../src/oauth/oauth-error.js';
import { optionalString, readParameters, requiredString } from '../../src/oauth/parameters.js';
import { declaredProperties, isValid, Optional } from '../../src/platform/validation/validation.js';
import { violationsOf } from '../../src/platform/validation/violations.js';
import { Nested } from '../../src/public/grant.js';
import { TransferBody } from '../../src/transfer/transfer.body.js';

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
  @IsOdd()
  odd?: string;
}

const GOOD = { text: 'x', request_id: 'abc' };

describe('the hint for a parameter of a body class', () => {
  it.each<[object, string]>([
    [{ text: undefined }, 'text: required'],
    [{ text: '' }, 'text: required'],
    [{ word: '' }, 'word: must not be empty'],
    [{ whole: '' }, 'whole: must not be empty'],
    [{ odd: '' }, 'odd: must not be empty'],
    [{ text: '', short: '' }, 'text: required'],
    [{ text: null }, 'text: must be a string'],
    [{ request_id: ['abc'] }, 'request_id: must be a string'],
    [{ word: 7 }, 'word: must be a string'],
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

it('the parameters of a form and of a query are the non-empty parameters of the URL Standard, for any text', () => {
  const pieces = fc.constantFrom('a', 'b', '=', '&', '%', '%3D', '+', '__proto__', 'ä', '?');
  fc.assert(
    fc.property(fc.array(pieces), (parts) => {
      const text = parts.join('');
      fc.pre(!/%[ab]{2}/.test(text)); // a byte that is not UTF-8 is rejected
      const all = [...new URLSearchParams(text)];
      const isRepeated = new Set(all.map(([name]) => name)).size < all.length;
      for (const [part, read] of [
        ['body', () => parseForm(text)],
        ['query', () => parseQuery(`/path?${text}`)],
      ] as const) {
        if (isRepeated) expect(hintOf(read)).toBe(`${part}: a parameter is given more than once`);
        else expect(Object.entries(read())).toEqual(all.filter(([, value]) => value !== ''));
      }
    }),
  );
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

/** An asynchronous constraint, for example for a database query. No body class has one. */
@ValidatorConstraint({ async: true })
class AsyncConstraint implements ValidatorConstraintInterface {
  validate = async () => true;
}

class Inner {
  @IsString()
  name!: string;
}

class WithEach {
  @IsString({ each: true })
  @ArrayMaxSize(2)
  names!: string[];
}

class WithNested {
  @ValidateNested()
  inner!: Inner;
}

class WithPromise {
  @Validate(AsyncConstraint)
  name!: string;
}

class WithOptional {
  @IsOptional()
  @IsInt()
  age?: number;
}

class Subclass extends Inner {
  @Optional()
  @MaxLength(3)
  override name!: string;
}

const UUID = '390e44e6-f1e6-4368-86dd-b74514508c2e';
const anyValue = fc.oneof(
  fc.constantFrom('cookie', 'token', 'customer', 'S256', UUID, '', null, undefined, 'a'.repeat(43), 'a'.repeat(2000)),
  fc.string(),
  fc.integer(),
  fc.array(fc.oneof(fc.string(), fc.integer()), { maxLength: 3 }),
  fc.record({ name: fc.oneof(fc.string(), fc.integer()) }),
);

const all: Type<object>[] = [CookieBody, AgentTokenBody, IdentityTokenBody, TransferBody, Inner, Subclass];
it.each([...all, WithEach, WithNested, WithPromise, WithOptional])(
  'fast validation accepts a body only if class-validator accepts it for the body class %o',
  (type) => {
    fc.assert(
      fc.property(fc.array(anyValue, { minLength: 8, maxLength: 8 }), (values) => {
        const body = bodyOf(type, values);
        if (isValid(type, body)) expect(validateSync(body)).toEqual([]);
      }),
    );
  },
);

it('fast validation accepts the valid bodies of common requests', () => {
  const site = { client_id: 'site', organization_id: UUID, response_type: 'token' };
  expect(isValid(CookieBody, Object.assign(new CookieBody(), { ...site, grant_type: 'cookie' }))).toBe(true);
  expect(isValid(AgentTokenBody, Object.assign(new AgentTokenBody(), { ...site, grant_type: 'agent_token' }))).toBe(
    true,
  );
  expect(isValid(Subclass, new Subclass())).toBe(true);
});

/** A body with these values in the order of its parameters. */
function bodyOf(type: Type<object>, values: unknown[]): object {
  const body = new type();
  for (const [index, name] of declaredProperties(type).entries()) Reflect.set(body, name, values[index]);
  return body;
}

class Address {
  @IsString()
  city!: string;
}

class Person {
  @Nested(() => Address)
  home!: Address;

  @Nested(() => Address, { each: true })
  others!: Address[];
}

class WithoutClass {
  @ValidateNested()
  home!: Address;
}

describe('a nested object in the OpenAPI document', () => {
  it('has the fields of its class, alone and in a list', () => {
    const address = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    expect(schemaOf(Person).properties).toEqual({ home: address, others: { type: 'array', items: address } });
  });

  it('is refused without a class, with a sentence that says what to add', () => {
    expect(() => schemaOf(WithoutClass)).toThrow('WithoutClass.home: has no class; use @Nested(() => …)');
  });
});

class WithId {
  @Matches(/^\d+$/, { message: 'must be the id of an outer id' })
  id!: string;
}

class Entry {
  @Matches(/^\d+$/, { message: 'must be the request_id of the start' })
  request_id!: string;

  @IsString()
  name!: string;

  @ValidateNested()
  inner!: WithId;
}

it('removes the name of a property only from the beginning of a message', () => {
  const inner = Object.assign(new WithId(), { id: 'x' });
  const entry = Object.assign(new Entry(), { request_id: 'x', name: 7, inner });
  expect(violationsOf(validateSync(entry))).toEqual([
    'request_id: must be the request_id of the start',
    'name: must be a string',
    'inner.id: must be the id of an outer id',
  ]);
});
