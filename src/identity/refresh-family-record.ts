import { IsISO8601, IsString } from 'class-validator';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';

/** A refresh family that leads to a customer, in responses to the operator. */
export class RefreshFamilyRecord {
  @IsString()
  @ApiProperty('The id of the refresh family.', EXAMPLE.familyId)
  id: string;

  @IsString()
  @ApiProperty('The client that uses the refresh token.', EXAMPLE.clientId)
  client_id: string;

  @IsISO8601()
  @ApiProperty('When the client used the refresh token last.', EXAMPLE.time)
  last_used_at: string;

  @IsISO8601()
  @ApiProperty('When the refresh token expires unless it is used.', EXAMPLE.laterTime)
  expires_at: string;
}
