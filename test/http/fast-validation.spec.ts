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
import { AgentTokenBody } from '../../src/grants/agent-token/agent-token.grant.js';
import { CookieBody } from '../../src/grants/cookie/cookie.grant.js';
import { IdentityTokenBody } from '../../src/grants/identity-token/identity-token.grant.js';
import { Optional } from '../../src/oauth/parameters.js';
import { declaredProperties, isValid } from '../../src/platform/validation.js';
import { TransferBody } from '../../src/transfer/transfer.body.js';

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

class WithDefined {
  @IsDefined()
  @IsString({ groups: ['others'] })
  name!: string;
}

class Subclass extends Inner {
  @Optional()
  @MaxLength(3)
  override name!: string;
}

const UUID = '390e44e6-f1e6-4368-86dd-b74514508c2e';
const value = fc.oneof(
  fc.constantFrom('cookie', 'token', 'customer', 'S256', UUID, '', null, undefined, 'a'.repeat(43), 'a'.repeat(2000)),
  fc.string(),
  fc.integer(),
  fc.array(fc.oneof(fc.string(), fc.integer()), { maxLength: 3 }),
  fc.record({ name: fc.oneof(fc.string(), fc.integer()) }),
);

describe('fast validation accepts a body only if class-validator accepts it', () => {
  const all: Type<object>[] = [CookieBody, AgentTokenBody, IdentityTokenBody, TransferBody, Inner, Subclass];
  it.each([...all, WithEach, WithNested, WithPromise, WithOptional, WithDefined])('for the body class %o', (type) => {
    fc.assert(
      fc.property(fc.array(value, { minLength: 8, maxLength: 8 }), (values) => {
        const body = bodyOf(type, values);
        if (isValid(type, body)) expect(validateSync(body)).toEqual([]);
      }),
    );
  });
});

it('fast validation accepts the valid bodies of common requests', () => {
  const site = { client_id: 'site', organization_id: UUID, response_type: 'token' };
  expect(isValid(CookieBody, Object.assign(new CookieBody(), { ...site, grant_type: 'cookie' }))).toBe(true);
  expect(isValid(AgentTokenBody, Object.assign(new AgentTokenBody(), { ...site, grant_type: 'agent_token' }))).toBe(
    true,
  );
  expect(isValid(Subclass, new Subclass())).toBe(true);
});

it('fast validation leaves rules for arrays, nested objects and promises to class-validator', () => {
  expect(isValid(WithEach, Object.assign(new WithEach(), { names: ['a'] }))).toBe(false);
  expect(isValid(WithNested, Object.assign(new WithNested(), { inner: new Inner() }))).toBe(false);
  expect(isValid(WithPromise, Object.assign(new WithPromise(), { name: 'a' }))).toBe(false);
});

function bodyOf(type: Type<object>, values: unknown[]): object {
  const body = new type();
  for (const [index, name] of declaredProperties(type).entries()) Reflect.set(body, name, values[index]);
  return body;
}
