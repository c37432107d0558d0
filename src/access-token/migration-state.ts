import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { dayOf } from '../platform/day.js';
import { RecordedValues } from './recorded-values.js';

const CHECK_INTERVAL_MS = 60_000;

/**
 * Whether all processes of release 1 have ended, which only the operator knows (protocol §9.6). Processes of release 1
 * ignore the tables of release 2, so the service writes some of them only from then on.
 */
@Injectable()
export class MigrationState implements OnApplicationBootstrap, OnApplicationShutdown {
  private complete = false;
  private dayOfCompletion = 0;
  private timer: NodeJS.Timeout | undefined;
  private readonly logger = new Logger('Migration');

  constructor(private readonly recorded: RecordedValues) {}

  async onApplicationBootstrap(): Promise<void> {
    if (await this.readComplete()) return;
    this.logger.warn('the upgrade is not complete; after the roll-out, run: node dist/cli.js migrate --complete');
    this.timer = setInterval(() => void this.readComplete().catch(() => undefined), CHECK_INTERVAL_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.timer);
  }

  /**
   * The state of the last check, which is at most a minute old and costs no statement. It never changes back, so it is
   * read until it is `true`.
   */
  get isComplete(): boolean {
    return this.complete;
  }

  /** The day on which the upgrade was completed; 0 until `isComplete`, and in a database without data of release 1. */
  get completeDay(): number {
    return this.dayOfCompletion;
  }

  /**
   * Costs one SELECT until the upgrade is complete, and nothing afterwards.
   *
   * @throws OAuthError `temporarily_unavailable` if processes of release 1 may still use the database
   */
  async assertComplete(): Promise<void> {
    if (await this.readIsComplete()) return;
    throw OAuthError.unavailable(new Error('the upgrade from release 1 is not complete'));
  }

  /** Costs one SELECT until the upgrade is complete, and nothing afterwards. */
  async readIsComplete(): Promise<boolean> {
    return this.complete || (await this.readComplete());
  }

  private async readComplete(): Promise<boolean> {
    const { isComplete, completeDay } = await this.recorded.upgrade();
    if (!isComplete) return false;
    this.dayOfCompletion = completeDay;
    this.complete = true;
    clearInterval(this.timer);
    return true;
  }
}

/**
 * Records that all processes of release 1 have ended. Requires a database without pending migrations.
 *
 * @param now in milliseconds since 1970
 * @returns whether the upgrade was incomplete before
 */
export async function completeUpgrade(dataSource: DataSource, now: number): Promise<boolean> {
  const isComplete = async (): Promise<boolean> => {
    const rows = await dataSource.query("SELECT 1 FROM recorded_value WHERE name = 'complete_release' AND value >= 2");
    return rows.length > 0;
  };
  if (await isComplete()) return false;
  // Before the release, so that it is recorded if the command fails half-way. Processes of release 1 noted no days of
  // customers, so idle_days count from this day.
  await dataSource.query("DELETE FROM recorded_value WHERE name = 'complete_day'");
  await dataSource.query(`INSERT INTO recorded_value (name, value) VALUES ('complete_day', ${dayOf(now)})`);
  await dataSource.query("UPDATE recorded_value SET value = 2 WHERE name = 'complete_release'");
  if (!(await isComplete())) {
    await dataSource.query("INSERT INTO recorded_value (name, value) VALUES ('complete_release', 2)");
  }
  return true;
}
