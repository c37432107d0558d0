import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';
import type { BrowserCredentials } from './identity-cookies.js';

/** Where an identity lives: each organization, and each separated group of it, has its own. */
export interface Place {
  organizationId: string;
  /** The empty text outside of groups. */
  groupId: string;
}

/** A browser that has shown its secret. */
interface KnownBrowser {
  browserId: string;
  /** Its customer in the asked place, where it has one. */
  customer: { entityId: string; generation: number } | undefined;
}

interface RecognisedRow {
  browser_id: string;
  secret_hash: string;
  last_seen_day: number;
  entity_id: string | null;
  generation: number | null;
}

const DAY = 86_400_000;

/** From any identity of a browser: the browser itself, and its identity in the asked place if there is one. */
const RECOGNISE = `
  SELECT browser.entity_id AS browser_id, browser.secret_hash, browser.last_seen_day, here.entity_id, here.generation
  FROM customer_identity shown
  JOIN customer_identity browser ON browser.entity_id = shown.browser_id
  LEFT JOIN customer_identity here
    ON here.browser_id = shown.browser_id AND here.organization_id = ? AND here.group_id = ?
  WHERE shown.entity_id = ?`;

/** The day on which browsers are noted as seen, counted from 1970. */
export const dayOf = (time: number): number => Math.floor(time / DAY);

/** Recognises browsers by what their cookies show. */
@Injectable()
export class KnownBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** The browser that has these credentials; seen today, so that it is not purged as idle. */
  async recognise({ entityId, secret }: BrowserCredentials, place: Place): Promise<KnownBrowser | undefined> {
    const parameters = [place.organizationId, place.groupId, entityId];
    const [row] = await this.database.select<RecognisedRow>(RECOGNISE, parameters);
    if (!row || !equalInConstantTime(row.secret_hash, sha256(secret))) return undefined;
    if (!(await this.noteVisit(row))) return undefined;
    return { browserId: row.browser_id, customer: customerOf(row) };
  }

  /** The day's first call keeps a browser from being purged as idle; false when it just was. */
  private async noteVisit({ browser_id, secret_hash, last_seen_day }: RecognisedRow): Promise<boolean> {
    const today = dayOf(this.clock.now());
    if (last_seen_day >= today) return true;
    const sql = 'UPDATE customer_identity SET last_seen_day = ? WHERE entity_id = ? AND secret_hash = ?';
    return (await this.database.change(sql, [today, browser_id, secret_hash])) > 0;
  }
}

function customerOf({ entity_id: entityId, generation }: RecognisedRow): KnownBrowser['customer'] {
  return entityId === null ? undefined : { entityId, generation: generation ?? 0 };
}
