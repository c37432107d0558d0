import { Injectable } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsISO8601, ValidateNested } from 'class-validator';
import { operatorActor } from '../http/callers/operator-credentials.js';
import { OptionalText, Text } from '../oauth/parameters.js';
import { Audit, party } from '../platform/audit/audit.js';
import { DAY_MS } from '../platform/clock.js';
import { timeOf } from '../platform/database/sql-dialect.js';
import { EXAMPLE } from '../platform/http/api-examples.js';
import { ApiProperty } from '../platform/http/api-route.js';
import { cursorAfter, MAX_PAGE_ENTRIES, type PageQuery, startOfPage } from '../registry/page-query.js';
import { BrowserRecognition } from '../session/browser-recognition.js';
import { type DeviceRow, Sessions } from '../session/sessions.js';
import { EndSessionsService } from './end-sessions.service.js';
import type { CandidateCredentials } from './identity-cookies.js';

/** A browser that leads to a customer, in responses to the operator. */
export class BrowserRecord {
  @Text('The id of the browser.', EXAMPLE.browserId)
  id!: string;

  @IsISO8601()
  @ApiProperty('The last day on which the browser used the customer (UTC).', '2026-11-22')
  last_seen_day!: string;
}

/** A page of the browsers that lead to a customer. */
export class BrowserPage {
  @IsArray()
  @ValidateNested({ each: true })
  @Type(() => BrowserRecord)
  @ApiProperty('The browsers of the page, in the order of their ids.')
  browsers!: BrowserRecord[];

  @OptionalText('The value of `cursor` for the next page. Absent on the last page.', EXAMPLE.cursor)
  next_cursor?: string;
}

/** A refresh token that leads to a customer, in responses to the operator. */
export class RefreshTokenRecord {
  @Text('The id of the session of the refresh token.', EXAMPLE.sessionId)
  id!: string;

  @Text('The client that uses the refresh token.', EXAMPLE.clientId)
  client_id!: string;

  @IsISO8601()
  @ApiProperty('When the client used the refresh token last.', EXAMPLE.time)
  last_used_at!: string;

  @IsISO8601()
  @ApiProperty('When the refresh token expires unless it is used.', EXAMPLE.laterTime)
  expires_at!: string;
}

/** The devices that hold a customer (protocol §9.2). */
@Injectable()
export class CustomerDevices {
  constructor(
    private readonly sessions: Sessions,
    private readonly customerSessions: EndSessionsService,
    private readonly recognition: BrowserRecognition,
    private readonly audit: Audit,
  ) {}

  /** The browsers that lead to a customer, the one seen last first. */
  async lastSeenBrowsers(entityId: string): Promise<BrowserRecord[]> {
    return (await this.browserRows(entityId)).map(browserRecordOf);
  }

  /** The same in pages, in the order of their ids. */
  async page(entityId: string, query: PageQuery): Promise<BrowserPage> {
    const list = `customers/${entityId}/browsers`;
    const after = startOfPage(list, query);
    const records = await this.lastSeenBrowsers(entityId);
    const following = records.filter(({ id }) => id > after).sort((one, other) => (one.id < other.id ? -1 : 1));
    const browsers = following.slice(0, Number(query.limit ?? MAX_PAGE_ENTRIES));
    const last = browsers.at(-1);
    if (last === undefined || browsers.length === following.length) return { browsers };
    return { browsers, next_cursor: cursorAfter(list, last.id) };
  }

  /** The refresh tokens that lead to a customer, the one used last first. */
  async refreshTokens(entityId: string): Promise<RefreshTokenRecord[]> {
    const rows = (await this.sessions.devicesOf(entityId)).filter(({ kind }) => kind === 'refresh');
    return rows.map(({ id, client_id, used_at, expires_at }) => ({
      ...{ id, client_id: client_id ?? '' },
      last_used_at: new Date(timeOf(used_at as Date)).toISOString(),
      expires_at: new Date(timeOf(expires_at)).toISOString(),
    }));
  }

  /**
   * Whether a request may end all sessions of browsers of a customer. It may if one of its own browsers leads to the
   * customer without a transfer, or if no browser does.
   */
  async mayEndBrowsers(candidates: CandidateCredentials | undefined, entityId: string): Promise<boolean> {
    if ((await this.browserRows(entityId)).every(({ kind }) => kind === 'transferred')) return true;
    const browsers = await this.recognition.leadingOf(candidates?.pairs ?? []);
    const leading = browsers.flatMap((browser) => browser.leading);
    return leading.some(({ kind, customer_id }) => customer_id === entityId && kind !== 'transferred');
  }

  /**
   * Ends the session of a browser, with its access tokens and all that was made with them.
   *
   * @returns whether the browser led to the customer
   */
  async endBrowser(entityId: string, browserId: string): Promise<boolean> {
    const session = (await this.browserRows(entityId)).find((row) => row.browser_id === browserId);
    if (!session) return false;
    const entries = await this.customerSessions.endOne(entityId, session.id, 'revoked');
    if (entries === undefined) return false;
    const details = { browser: browserId };
    this.audit.success('browser.ended', operatorActor(), party('customer', entityId), { details });
    return true;
  }

  /** Ends a refresh token in the same way. @returns whether it led to the customer */
  async endRefreshToken(entityId: string, sessionId: string): Promise<boolean> {
    const session = (await this.sessions.devicesOf(entityId)).find(
      ({ id, kind }) => id === sessionId && kind === 'refresh',
    );
    if (!session) return false;
    const entries = await this.customerSessions.endOne(entityId, sessionId, 'refresh_token_revoked');
    if (entries === undefined) return false;
    this.audit.success('token.revoked', operatorActor(), party('token', sessionId));
    return true;
  }

  private async browserRows(entityId: string): Promise<DeviceRow[]> {
    return (await this.sessions.devicesOf(entityId)).filter(({ browser_id }) => browser_id !== null);
  }
}

function browserRecordOf({ browser_id, seen_day }: DeviceRow): BrowserRecord {
  return { id: browser_id as string, last_seen_day: isoDay(seen_day) };
}

function isoDay(day: number | null): string {
  return new Date((day ?? 0) * DAY_MS).toISOString().slice(0, 10);
}
