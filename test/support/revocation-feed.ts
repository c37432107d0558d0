import { expect } from 'vitest';
import { claimsOf } from './agent-tokens.js';
import { basic, bearer } from './authorization-headers.js';
import { TOKEN } from './cookie-grant.js';
import { manage } from './management-api.js';
import type { HttpClient, TestResponse } from './test-service.js';
import { newCustomer } from './transfers.js';

export const FEED_SECRET = 'a-secret-of-a-resource-server-0123456789';

/** The pause between two reads of the feed's state by a process. */
export const POLL_PAUSE_MS = 400;

/** Resource servers with different audiences. The id says which audiences. */
export const FEED_SERVERS = [
  { id: 'customer-server', secret: FEED_SECRET, audiences: ['customer-api'] },
  { id: 'agent-server', secret: FEED_SECRET, audiences: ['agent-api'] },
  { id: 'other-server', secret: FEED_SECRET, audiences: ['another-api'] },
];

export interface FeedEntry {
  kind: string;
  value: string;
  epoch?: number;
  generation?: number;
  issued_before?: string;
  expires_at: string;
}

type Managed = { managementUrl: string };

export function readFeed(
  service: Managed,
  query: string,
  headers: Record<string, string> = basic('customer-server', FEED_SECRET),
): Promise<TestResponse> {
  return manage(service as never, 'GET', `/oauth2/revocations${query}`, headers);
}

/** Ends a token of a new customer. Returns the value of the entry: the `sid`. */
export async function endNewToken(service: HttpClient): Promise<string> {
  const { access_token } = await newCustomer(service);
  // a caller repeats a request that a busy database could not serve in time
  await expect.poll(async () => (await service.send('DELETE', TOKEN, bearer(access_token))).status).toBe(200);
  return claimsOf(access_token).sid as string;
}

/** A resource server that follows the feed, as a consumer of the documents would. */
export class FeedConsumer {
  /** All entries, in the order of their arrival. */
  readonly entries: FeedEntry[] = [];
  cursor: string | undefined;

  constructor(
    private services: Managed[],
    private readonly headers: Record<string, string> = basic('customer-server', FEED_SECRET),
  ) {}

  /** Reads one page from the service that is next. */
  async read(wait = 0): Promise<{ revocations: FeedEntry[]; complete: boolean }> {
    const service = this.services.shift() as Managed;
    this.services.push(service);
    const after = this.cursor === undefined ? '' : `after=${this.cursor}&`;
    const { status, body } = await readFeed(service, `?${after}wait=${wait}`, this.headers);
    expect({ status, body }).toMatchObject({ status: 200 });
    this.cursor = body.cursor;
    this.entries.push(...body.revocations);
    return body;
  }

  /** Reads pages until an entry matches. */
  async find(expected: Partial<FeedEntry>): Promise<FeedEntry> {
    for (;;) {
      const found = this.entries.findLast((entry) => matches(entry, expected));
      if (found) return found;
      await this.read(5);
    }
  }

  /** Reads pages until nothing further exists. */
  async catchUp(): Promise<FeedEntry[]> {
    for (let wait = 0; !(await this.read(wait)).complete; wait = 1);
    return this.entries;
  }

  has(expected: Partial<FeedEntry>): boolean {
    return this.entries.some((entry) => matches(entry, expected));
  }
}

function matches(entry: FeedEntry, expected: Partial<FeedEntry>): boolean {
  return Object.entries(expected).every(([name, value]) => entry[name as keyof FeedEntry] === value);
}
