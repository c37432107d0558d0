import { applyDecorators, type Type as Class } from '@nestjs/common';
import { Type } from 'class-transformer';
import { ValidateNested } from 'class-validator';

/**
 * Declares a property whose value is an object of a class, or with `each` a list of them. The rules of the class apply to
 * the object, and the OpenAPI document describes its fields.
 */
export function Nested(type: () => Class<object>, { each = false }: { each?: boolean } = {}): PropertyDecorator {
  return applyDecorators(ValidateNested({ each }), Type(type));
}
