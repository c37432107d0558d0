import { applyDecorators, type Type } from '@nestjs/common';
import { IsArray, IsBoolean, MaxLength } from 'class-validator';
import { EXAMPLE } from '../../../platform/http/api-examples.js';
import { ApiProperty } from '../../../platform/http/api-route.js';
import { Nested, Optional } from '../../../platform/validation/decorators.js';
import { IsUuid } from '../../../platform/validation/text-rules.js';

const MAX_NAME_CHARACTERS = 200;

// Fields of the queries and responses of several lists.
export const ApiFromFile = () =>
  applyDecorators(IsBoolean(), ApiProperty('Whether a registry file brought the entry.', false));

export const ApiEntries = (type: () => Type<object>) =>
  applyDecorators(
    IsArray(),
    Nested(type, { each: true }),
    ApiProperty('The entries of the page, in the order of their keys.'),
  );

export const ApiOrganizationFilter = () =>
  applyDecorators(Optional(), IsUuid(), ApiProperty('Only entries of this organization.', EXAMPLE.organizationId));

export const ApiNameFilter = () =>
  applyDecorators(
    Optional(),
    MaxLength(MAX_NAME_CHARACTERS),
    ApiProperty('Only entries whose name contains this text. Upper and lower case are the same.', 'Acme'),
  );
