import { applyDecorators, type Type as Class } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsIn, IsInt, IsString, ValidateBy, ValidateIf, ValidateNested } from 'class-validator';
import { ApiProperty } from '../http/api-route.js';

/** A rule for one value. */
export const rule = <Value>(name: string, validate: (value: Value) => boolean, message: string): PropertyDecorator =>
  ValidateBy({ name, validator: { validate, defaultMessage: () => message } });

/** Marks an optional parameter. A value that is present must be valid; `null` and the empty string count as present. */
export const Optional = (): PropertyDecorator => ValidateIf((_body, value) => value !== undefined);

/**
 * Declares a property whose value is an object of a class, or with `each` a list of them. The rules of the class apply to
 * the object, and the OpenAPI document describes its fields.
 */
export function Nested(type: () => Class<object>, { each = false }: { each?: boolean } = {}): PropertyDecorator {
  return applyDecorators(ValidateNested({ each }), Type(type));
}

// Each `Api…` decorator sets the rule of a field, and its description in the OpenAPI document.
export const ApiString = (description: string, example?: unknown) =>
  applyDecorators(IsString(), ApiProperty(description, example));

export const ApiOptionalString = (description: string, example?: unknown) =>
  applyDecorators(Optional(), ApiString(description, example));

export const ApiStringArray = (description: string, example?: unknown) =>
  applyDecorators(IsString({ each: true }), ApiProperty(description, example));

/** One of several texts, by default the first one in the example. */
export const ApiEnum = (values: readonly string[], description: string, example: unknown = values[0]) =>
  applyDecorators(IsIn(values), ApiProperty(description, example));

export const ApiInteger = (description: string, example?: unknown) =>
  applyDecorators(IsInt(), ApiProperty(description, example));

export const ApiOptionalInteger = (description: string, example?: unknown) =>
  applyDecorators(Optional(), ApiInteger(description, example));
