import { IsBoolean } from 'class-validator';
import { Optional } from '../oauth/parameters.js';
import { ApiProperty } from '../platform/http/api-property.js';

/** The parameters of the operator's `end_sessions` (protocol §4.14). */
export class EndSessionsBody {
  @Optional()
  @IsBoolean({ message: 'must be a boolean' })
  @ApiProperty('Whether the browsers forget the customer too. `false` if omitted.', true)
  browsers?: boolean;
}
