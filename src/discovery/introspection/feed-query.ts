import { Matches, MaxLength } from 'class-validator';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { ApiOptionalString, Optional } from '../../platform/validation/validation.js';

/** The parameters of each feed of the management port (protocol §7.6 and §7.8). */
export class FeedQuery {
  @ApiOptionalString(
    'The `cursor` of the last response. If omitted, the pages begin with everything in force.',
    EXAMPLE.cursor,
  )
  @MaxLength(64)
  after?: string;

  @Optional()
  @Matches(/^(\d|1\d|2[0-5])$/, { message: 'must be 0 to 25' })
  @ApiProperty('The seconds to wait for a new entry, 0 to 25. 0 if omitted.', '25')
  wait?: string;
}

export const FEED_ERRORS = {
  unknownCursor: () => OAuthError.invalidRequest('after: not a cursor of this feed'),
  wait: () => OAuthError.invalidRequest('wait: must be 0 to 25'),
};
