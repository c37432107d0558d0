import { expect } from 'vitest';
import { basic, bearer } from './authorization-headers.js';
import { manage } from './management-api.js';
import { ACME } from './test-registry.js';
import type { TestResponse } from './test-service.js';
import { ADMIN_TOKEN } from './use-service.js';

export const EVENTS_SECRET = 'a-secret-of-a-resource-server-0123456789';

/** Resource servers that read the events of different organizations, and two that read none. */
export const EVENT_SERVERS = [
  { id: 'all-events', secret: EVENTS_SECRET, audiences: ['customer-api'], events: 'all' },
  { id: 'acme-events', secret: EVENTS_SECRET, audiences: ['customer-api', 'agent-api'], events: [ACME] },
  { id: 'no-events', secret: EVENTS_SECRET, audiences: ['customer-api'] },
  { id: 'empty-events', secret: EVENTS_SECRET, audiences: ['customer-api'], events: [] },
];

export interface ReadEvent {
  id: string;
  kind: string;
  organization_id: string;
  entity_id?: string;
  from?: string;
  into?: string;
  time: string;
}

type Managed = { managementUrl: string };

export const AS_OPERATOR = bearer(ADMIN_TOKEN);

export function readEvents(
  service: Managed,
  query = '',
  headers: Record<string, string> = AS_OPERATOR,
): Promise<TestResponse> {
  return manage(service as never, 'GET', `/oauth2/events${query}`, headers);
}

/** A service that follows the events, by default as the operator. */
export class EventConsumer {
  /** All events, in the order of their arrival. */
  readonly events: ReadEvent[] = [];
  cursor: string | undefined;

  /** @param id of the resource server; the operator if omitted */
  constructor(
    private readonly services: Managed[],
    private readonly id?: string,
  ) {}

  /** Reads one page from the service that is next. */
  async read(wait = 0, kinds = ''): Promise<{ events: ReadEvent[]; cursor: string; complete: boolean }> {
    const service = this.services.shift() as Managed;
    this.services.push(service);
    const after = this.cursor === undefined ? '' : `after=${this.cursor}&`;
    const headers = this.id === undefined ? AS_OPERATOR : basic(this.id, EVENTS_SECRET);
    const { status, body } = await readEvents(service, `?${after}wait=${wait}${kinds}`, headers);
    expect({ status, body }).toMatchObject({ status: 200 });
    this.cursor = body.cursor;
    this.events.push(...body.events);
    return body;
  }

  /** Reads pages until nothing further exists. Returns all events. */
  async catchUp(): Promise<ReadEvent[]> {
    for (let wait = 0; !(await this.read(wait)).complete; wait = 1);
    return this.events;
  }

  /** Reads pages until there are so many events that name a customer. Returns these, without their ids and times. */
  async about(entityId: string, count = 1): Promise<Omit<ReadEvent, 'id' | 'time'>[]> {
    while (this.naming(entityId).length < count) await this.read(5);
    return this.naming(entityId).map(({ id: _id, time: _time, ...event }) => event);
  }

  naming(entityId: string): ReadEvent[] {
    return this.events.filter((event) => [event.entity_id, event.from, event.into].includes(entityId));
  }
}
