import { Type } from 'class-transformer';
import { IsArray, IsBoolean, IsISO8601, IsString, ValidateNested } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { BrowserRecord } from './customer-browsers.js';
import { RefreshFamilyRecord } from './refresh-family-record.js';

/** The customer in responses to the operator. */
export class CustomerRecord {
  @IsString()
  @ApiProperty('The id of the customer.', EXAMPLE.entityId)
  entity_id: string;

  @IsString()
  @ApiProperty('The organization of the customer.', EXAMPLE.organizationId)
  organization_id: string;

  @Optional()
  @IsString()
  @ApiProperty('Only for a customer of a group.', EXAMPLE.groupId)
  group_id?: string;

  @IsBoolean()
  @ApiProperty('Whether a browser created the customer; otherwise an agent or another grant did.', true)
  browser: boolean;

  @IsISO8601()
  @ApiProperty('When the customer was created.', EXAMPLE.time)
  created_at: string;

  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  @ApiProperty('The browsers that lead to the customer, the one seen last first, at most 200.')
  browsers: BrowserRecord[];

  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => RefreshFamilyRecord)
  @ApiProperty('The refresh families that lead to the customer, the one used last first.')
  refresh_families: RefreshFamilyRecord[];

  @Optional()
  @IsString({ each: true })
  @ApiProperty('Other ids of the customer, in the order of their linking.', [EXAMPLE.linkedId])
  linked_ids?: string[];
}
