import { IsString, ValidateNested } from 'class-validator';
import { describe, expect, it } from 'vitest';
import { schemaOf } from '../../src/openapi/schemas.js';
import { Nested } from '../../src/public/grant.js';

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
