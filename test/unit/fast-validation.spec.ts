import type { Type } from '@nestjs/common';
import {
  ArrayMaxSize,
  IsDefined,
  IsInt,
  IsOptional,
  IsString,
  MaxLength,
  Validate,
  ValidateNested,
  ValidatorConstraint,
  type ValidatorConstraintInterface,
  validateSync,
} from 'class-validator';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AgentTokenBody } from '../../src/grants/agent-token/agent-token.body.js';
import { CookieBody } from '../../src/grants/cookie/cookie.body.js';
import { IdentityTokenBody } from '../../src/grants/identity-token/identity-token.body.js';
import { Optional } from '../../src/oauth/parameters.js';
import { declaredProperties } from '../../src/platform/declared-properties.js';
import { isValid } from '../../src/platform/fast-validation.js';
import { TransferBody } from '../../src/transfer/transfer.body.js';

/** One that waits, as for a database: no request path validates so. */
@ValidatorConstraint({ async: true })
class Later implements ValidatorConstraintInterface {
  validate = async () => true;
}

class Inner {
  @IsString()
  name: string;
}

class WithEach {
  @IsString({ each: true })
  @ArrayMaxSize(2)
  names: string[];
}

class WithNested {
  @ValidateNested()
  inner: Inner;
}

class WithPromise {
  @Validate(Later)
  name: string;
}

class WithOptional {
  @IsOptional()
  @IsInt()
  age?: number;
}

class WithDefined {
  @IsDefined()
  @IsString({ groups: ['others'] })
  name: string;
}

class Below extends Inner {
  @Optional()
  @MaxLength(3)
  override name: string;
}

const UUID = '390e44e6-f1e6-4368-86dd-b74514508c2e';
const value = fc.oneof(
  fc.constantFrom('cookie', 'token', 'customer', 'S256', UUID, '', null, undefined, 'a'.repeat(43), 'a'.repeat(2000)),
  fc.string(),
  fc.integer(),
  fc.array(fc.oneof(fc.string(), fc.integer()), { maxLength: 3 }),
  fc.record({ name: fc.oneof(fc.string(), fc.integer()) }),
);

describe('of whatever body, the quick look finds no fault only where class-validator finds none', () => {
  const all: Type<object>[] = [CookieBody, AgentTokenBody, IdentityTokenBody, TransferBody, Inner, Below];
  it.each([...all, WithEach, WithNested, WithPromise, WithOptional, WithDefined])('%o', (type) => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 8, maxLength: 8 }), (values) => {
        const body = bodyOf(type, values);
        if (isValid(type, body)) expect(validateSync(body)).toEqual([]);
      }),
    );
  });
});

it('the bodies of requests that are right are found so without class-validator', () => {
  const site = { client_id: 'site', organization_id: UUID, response_type: 'token' };
  expect(isValid(CookieBody, Object.assign(new CookieBody(), { ...site, grant_type: 'cookie' }))).toBe(true);
  expect(isValid(AgentTokenBody, Object.assign(new AgentTokenBody(), { ...site, grant_type: 'agent_token' }))).toBe(
    true,
  );
  expect(isValid(Below, new Below())).toBe(true);
});

it('rules that ask for more than a value by itself are left to class-validator', () => {
  expect(isValid(WithEach, Object.assign(new WithEach(), { names: ['a'] }))).toBe(false);
  expect(isValid(WithNested, Object.assign(new WithNested(), { inner: new Inner() }))).toBe(false);
  expect(isValid(WithPromise, Object.assign(new WithPromise(), { name: 'a' }))).toBe(false);
});

function bodyOf(type: Type<object>, values: unknown[]): object {
  const body = new type();
  for (const [index, name] of declaredProperties(type).entries()) Reflect.set(body, name, values[index]);
  return body;
}
