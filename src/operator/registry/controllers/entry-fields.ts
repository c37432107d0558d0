import { applyDecorators, type Type } from '@nestjs/common';
import { IsArray, IsBoolean } from 'class-validator';
import { ApiProperty } from '../../../platform/http/api-route.js';
import { Nested } from '../../../platform/validation/validation.js';

// Fields of the responses of all lists.
export const ApiFromFile = () =>
  applyDecorators(IsBoolean(), ApiProperty('Whether a registry file brought the entry.', false));

export const ApiEntries = (type: () => Type<object>) =>
  applyDecorators(
    IsArray(),
    Nested(type, { each: true }),
    ApiProperty('The entries of the page, in the order of their keys.'),
  );
