import { applyDecorators } from '@nestjs/common';
import { IsArray, IsBoolean, MaxLength } from 'class-validator';
import { IsUuid, Optional } from '../../oauth/parameters.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { Nested } from '../../platform/validation.js';

const MAX_NAME_CHARACTERS = 200;

// Fields of the queries and responses of several lists.
export const FromFile = () =>
  applyDecorators(IsBoolean(), ApiProperty('Whether a registry file brought the entry.', false));

export const Entries = (type: () => Parameters<typeof Nested>[0] extends () => infer Type ? Type : never) =>
  applyDecorators(
    IsArray(),
    Nested(type, { each: true }),
    ApiProperty('The entries of the page, in the order of their keys.'),
  );

export const OfOrganization = () =>
  applyDecorators(Optional(), IsUuid(), ApiProperty('Only entries of this organization.', EXAMPLE.organizationId));

export const Named = () =>
  applyDecorators(
    Optional(),
    MaxLength(MAX_NAME_CHARACTERS),
    ApiProperty('Only entries whose name contains this text. Upper and lower case are the same.', 'Acme'),
  );
