import type { Type } from '@nestjs/common';

/** The text of a parameter or field in the OpenAPI document. */
export interface ApiPropertyText {
  /** One or two sentences for a caller who has not read the protocol. */
  description: string;
  /** A valid value. If omitted, the example of a nested object is composed of the examples of its fields. */
  example?: unknown;
}

const API_PROPERTY = Symbol('ApiProperty');

/** Describes a parameter or field of a body, query, response or claims class for the OpenAPI document. */
export const ApiProperty =
  (description: string, example?: unknown): PropertyDecorator =>
  (target, name) =>
    Reflect.defineMetadata(API_PROPERTY, { description, example }, target, name);

/** The text of a property of a class or its base classes; `undefined` without `@ApiProperty`. */
export function apiPropertyOf(type: Type<object>, name: string): ApiPropertyText | undefined {
  return Reflect.getMetadata(API_PROPERTY, type.prototype, name);
}
