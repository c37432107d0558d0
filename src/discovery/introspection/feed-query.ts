import { applyDecorators, Get, HttpCode, Post, type Type } from '@nestjs/common';
import { IsBoolean, MaxLength } from 'class-validator';
import { CredentialParameters } from '../../http/callers/client-authentication.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty, ApiRoute } from '../../platform/http/api-route.js';
import { IS_WAIT_SECONDS } from '../../platform/validation/text-rules.js';
import { ApiOptionalString, ApiString, Optional, rule } from '../../platform/validation/validation.js';

const IsCursor = () =>
  applyDecorators(
    ApiOptionalString(
      'The `cursor` of the last response. If omitted, the pages begin with everything in force.',
      EXAMPLE.cursor,
    ),
    MaxLength(64),
  );

const IsWait = () =>
  applyDecorators(
    Optional(),
    rule(
      IS_WAIT_SECONDS,
      (value) => ['string', 'number'].includes(typeof value) && /^(\d|1\d|2[0-5])$/.test(String(value)),
      'must be 0 to 25',
    ),
    ApiProperty('The seconds to wait for a new entry, 0 to 25. 0 if omitted.', 25),
  );

/** The parameters of each feed of the management port (protocol §7.6 and §7.8). */
export class FeedQuery {
  @IsCursor()
  after?: string;

  @IsWait()
  wait?: number | string;
}

/** The parameters of a feed in a body, which may have credentials too. */
export class FeedBody extends CredentialParameters implements FeedQuery {
  @IsCursor()
  after?: string;

  @IsWait()
  wait?: number | string;
}

export const unknownCursor = () => OAuthError.invalidRequest('after: not a cursor of this feed');

/** What the pages of each feed have in common. */
export class PageOfFeed {
  @ApiString('The value of `after` for the next request.', EXAMPLE.cursor)
  cursor!: string;

  @IsBoolean()
  @ApiProperty('Whether nothing further exists now.', true)
  complete!: boolean;
}

interface FeedTexts {
  summary: string;
  description: string;
  response: Type<object>;
}

/** A feed is read by GET, or by POST with credentials in the body. */
export const FeedRoutes = ({ summary, ...texts }: FeedTexts) => ({
  Get: () => applyDecorators(Get(), ApiRoute({ summary, ...texts, security: ['resource_server', 'operator'] })),
  Post: () =>
    applyDecorators(
      Post(),
      HttpCode(200),
      ApiRoute({
        summary: `${summary}, with credentials in the body`,
        ...texts,
        security: ['resource_server', 'operator', 'none'],
      }),
    ),
});
