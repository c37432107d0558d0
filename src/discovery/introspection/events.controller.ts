import { applyDecorators, Req } from '@nestjs/common';
import { IsArray, IsISO8601, Matches } from 'class-validator';
import type { Request, Response } from 'express';
import { EVENT_KINDS, type EventKind } from '../../feed/customer-event.entity.js';
import type { PublishedEvent } from '../../feed/event-pages.js';
import { ResourceServerGuard } from '../../http/callers/secret.guards.js';
import { Caller, ValidatedBody, ValidatedQuery } from '../../http/routes/parameter.decorators.js';
import { OAuthError } from '../../oauth/oauth-error.js';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { disconnectSignal } from '../../platform/http/disconnect-signal.js';
import { ManagementController } from '../../platform/http/listener.decorators.js';
import { ApiEnum, ApiOptionalString, ApiString, Nested, Optional } from '../../platform/validation/validation.js';
import type { ReadableEvents, ResourceServer } from '../../registry/resource-server.entity.js';
import { eventCursorOf, parseEventCursor } from './feed-cursors.js';
import { FeedBody, FeedQuery, FeedRoutes, PageOfFeed, unknownCursor } from './feed-query.js';
import { EventReader } from './feed-reader.js';

const KIND = EVENT_KINDS.join('|').replaceAll('.', '\\.');
const KINDS_RULE = `must be kinds of events, separated by commas: ${EVENT_KINDS.join(', ')}`;

const AreKinds = () =>
  applyDecorators(
    Optional(),
    Matches(new RegExp(`^(${KIND})(,(${KIND}))*$`), { message: KINDS_RULE }),
    ApiProperty('The kinds of the events, separated by commas. All if omitted.', 'customer.linked,customer.erased'),
  );

class EventsQuery extends FeedQuery {
  @AreKinds()
  kinds?: string;
}

class EventsBody extends FeedBody implements EventsQuery {
  @AreKinds()
  kinds?: string;
}

const EXAMPLE_EVENTS = [
  {
    id: EXAMPLE.tokenId,
    kind: 'customer.linked',
    organization_id: EXAMPLE.organizationId,
    from: EXAMPLE.linkedId,
    into: EXAMPLE.entityId,
    time: EXAMPLE.time,
  },
];

/** What became of a customer. Has either `entity_id`, or `from` and `into`. */
class EventRecord implements PublishedEvent {
  @ApiString('The id of the event. A repeated event has the same one.', EXAMPLE.tokenId)
  id!: string;

  @ApiEnum(EVENT_KINDS, 'What happened.')
  kind!: EventKind;

  @ApiString('The organization of the customer.', EXAMPLE.organizationId)
  organization_id!: string;

  @ApiOptionalString('The customer. Absent in events of the kind `customer.linked`.', EXAMPLE.entityId)
  entity_id?: string;

  @ApiOptionalString('Only of `customer.linked`: the customer of the visitor.', EXAMPLE.linkedId)
  from?: string;

  @ApiOptionalString('Only of `customer.linked`: the customer of the user, to whom it belongs now.', EXAMPLE.entityId)
  into?: string;

  @IsISO8601()
  @ApiProperty('When it happened.', EXAMPLE.time)
  time!: string;
}

class EventsPage extends PageOfFeed {
  @IsArray()
  @Nested(() => EventRecord, { each: true })
  @ApiProperty('The events of the page: at most 5,000, possibly none.', EXAMPLE_EVENTS)
  events!: EventRecord[];
}

const Feed = FeedRoutes({
  summary: 'Follow what becomes of customers',
  description:
    'A service that stores data of customers learns that a visitor became a user or was linked to one, and that a customer was erased or its sessions ended. A resource server gets the events of the organizations in its entry, the operator all events.',
  response: EventsPage,
});

/** The events of customers, for services that store data of customers (protocol §7.8). */
@ManagementController('oauth2/events')
export class EventsController {
  constructor(private readonly reader: EventReader) {}

  @Feed.Get()
  async read(
    @Caller(ResourceServerGuard) caller: ResourceServer | undefined,
    @ValidatedQuery(EventsQuery) query: EventsQuery,
    @Req() request: Request,
  ): Promise<EventsPage> {
    return this.page(caller, query, request);
  }

  @Feed.Post()
  async readByBody(
    @Caller(ResourceServerGuard) caller: ResourceServer | undefined,
    @ValidatedBody(EventsBody, { form: true }) body: EventsBody,
    @Req() request: Request,
  ): Promise<EventsPage> {
    return this.page(caller, body, request);
  }

  private async page(
    caller: ResourceServer | undefined,
    { after: cursor, wait = '0', kinds }: EventsQuery,
    request: Request,
  ): Promise<EventsPage> {
    const isVisible = visibilityFor(readableEvents(caller), kinds?.split(','));
    const after = cursor === undefined ? undefined : parseEventCursor(cursor);
    if (cursor !== undefined && !after) throw unknownCursor();
    const disconnected = disconnectSignal(request.res as Response);
    const page = await this.reader.read({ after, waitSeconds: Number(wait), isVisible, disconnected });
    return { events: page.entries, cursor: eventCursorOf(page.end), complete: page.isComplete };
  }
}

/** The organizations whose events the caller reads. @throws OAuthError `insufficient_scope` */
function readableEvents(caller: ResourceServer | undefined): ReadableEvents {
  if (!caller) return 'all';
  if (caller.events === null || !caller.audiences.includes('customer-api'))
    throw OAuthError.insufficientEntry('events');
  return caller.events;
}

function visibilityFor(readable: ReadableEvents, kinds: string[] | undefined): (event: PublishedEvent) => boolean {
  const organizations = readable === 'all' ? undefined : new Set(readable);
  return ({ kind, organization_id }) =>
    (organizations?.has(organization_id) ?? true) && (kinds?.includes(kind) ?? true);
}
