import { IsString } from 'class-validator';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-property.js';
import { Optional } from './parameters.js';

/** The credentials of a client that does not authenticate by `Authorization: Basic` (RFC 6749 §2.3.1). */
export class ClientParameters {
  @Optional()
  @IsString()
  @ApiProperty('The id of the caller, if the request has no `Authorization: Basic`.', EXAMPLE.serverClientId)
  client_id?: string;

  @Optional()
  @IsString()
  @ApiProperty(
    'The secret of the caller, if the request has no `Authorization: Basic`. A client without a secret omits it.',
    EXAMPLE.clientSecret,
  )
  client_secret?: string;
}
