import { Req } from '@nestjs/common';
import { IsArray, IsISO8601 } from 'class-validator';
import type { Request, Response } from 'express';
import type { PublishedRevocation } from '../../feed/revocation-pages.js';
import { ResourceServerGuard } from '../../http/callers/secret.guards.js';
import { Caller, ValidatedBody, ValidatedQuery } from '../../http/routes/parameter.decorators.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { disconnectSignal } from '../../platform/http/disconnect-signal.js';
import { ManagementController } from '../../platform/http/listener.decorators.js';
import { ApiEnum, ApiOptionalInteger, ApiString, Nested, Optional } from '../../platform/validation/validation.js';
import type { ResourceServer } from '../../registry/resource-server.entity.js';
import { isVisibleIn, parseRevocationCursor, revocationCursorOf, viewOf } from './feed-cursors.js';
import { FeedBody, FeedQuery, FeedRoutes, PageOfFeed, unknownCursor } from './feed-query.js';
import { RevocationReader } from './feed-reader.js';

const EXAMPLE_ENTRIES = [
  { kind: 'session', value: EXAMPLE.sessionId, epoch: 2, expires_at: EXAMPLE.laterTime },
  { kind: 'subject', value: EXAMPLE.entityId, generation: 1_795_000_000_000, expires_at: EXAMPLE.laterTime },
  { kind: 'client', value: EXAMPLE.clientId, issued_before: EXAMPLE.time, expires_at: EXAMPLE.laterTime },
];

/** Ends tokens before they expire. Has either `epoch`, `generation` or `issued_before`. */
class RevocationEntry {
  @ApiEnum(
    ['session', 'subject', 'token', 'client', 'organization'],
    'What `value` is: the `sid` of tokens and the `act.sid` of customer tokens, the `sub` of a customer, the `jti` of a customer token, a client, or an organization.',
    'subject',
  )
  kind!: PublishedRevocation['kind'];

  @ApiString('The id that tokens are compared with.', EXAMPLE.entityId)
  value!: string;

  @ApiOptionalInteger('Tokens with a lower `ep`, or `act.ep`, have ended. Only in entries of the kind `session`.', 2)
  epoch?: number;

  @ApiOptionalInteger('Tokens with a lower `gen` have ended. Only in entries of the kind `subject`.', 2)
  generation?: number;

  @Optional()
  @IsISO8601()
  @ApiProperty('Tokens that were issued up to this time have ended.', EXAMPLE.time)
  issued_before?: string;

  @IsISO8601()
  @ApiProperty('No token that the entry has ended is valid after this time. Forget the entry then.', EXAMPLE.laterTime)
  expires_at!: string;
}

class FeedPage extends PageOfFeed {
  @IsArray()
  @Nested(() => RevocationEntry, { each: true })
  @ApiProperty('The entries of the page: at most 5,000, possibly none.', EXAMPLE_ENTRIES)
  revocations!: RevocationEntry[];
}

const Feed = FeedRoutes({
  summary: 'Follow the revocations in force',
  description:
    'A service that verifies tokens offline learns from this feed which tokens have ended. A resource server gets the entries that can end tokens of its audiences, the operator all entries.',
  response: FeedPage,
});

/** The revocation feed for resource servers that verify tokens offline (protocol §7.6). */
@ManagementController('oauth2/revocations')
export class RevocationFeedController {
  constructor(private readonly reader: RevocationReader) {}

  @Feed.Get()
  async read(
    @Caller(ResourceServerGuard) caller: ResourceServer | undefined,
    @ValidatedQuery(FeedQuery) query: FeedQuery,
    @Req() request: Request,
  ): Promise<FeedPage> {
    return this.page(caller, query, request);
  }

  @Feed.Post()
  async readByBody(
    @Caller(ResourceServerGuard) caller: ResourceServer | undefined,
    @ValidatedBody(FeedBody, { form: true }) body: FeedBody,
    @Req() request: Request,
  ): Promise<FeedPage> {
    return this.page(caller, body, request);
  }

  private async page(
    caller: ResourceServer | undefined,
    { after, wait = '0' }: FeedQuery,
    request: Request,
  ): Promise<FeedPage> {
    const view = caller ? viewOf(caller.audiences) : 'all';
    const cursor = after === undefined ? undefined : parseRevocationCursor(after);
    if (after !== undefined && !cursor) throw unknownCursor();
    // a caller that has read another view lacks revocations at lower positions, so that it reads everything again
    const start = cursor?.view === view ? cursor : undefined;
    const disconnected = disconnectSignal(request.res as Response);
    const isVisible = (entry: PublishedRevocation) => isVisibleIn(view, entry);
    const page = await this.reader.read({
      after: start,
      waitSeconds: Number(wait),
      isVisible,
      disconnected,
    });
    return {
      revocations: page.entries.map(({ audience: _audience, ...entry }) => entry),
      cursor: revocationCursorOf({ ...page.end, view }),
      complete: page.isComplete,
    };
  }
}
