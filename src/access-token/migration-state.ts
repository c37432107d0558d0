import { Injectable, Logger, type OnApplicationBootstrap } from '@nestjs/common';
import type { DataSource } from 'typeorm';
import { OAuthError } from '../oauth/oauth-error.js';
import { RecordedValues } from './recorded-values.js';

/**
 * Whether all processes of release 1 have ended, which only the operator knows (protocol §9.6). Processes of release 1
 * ignore the tables of release 2, so the service writes some of them only from then on.
 */
@Injectable()
export class MigrationState implements OnApplicationBootstrap {
  /** The state never changes back, so it is read until it is `true`. */
  private isComplete = false;
  private readonly logger = new Logger('Migration');

  constructor(private readonly recorded: RecordedValues) {}

  async onApplicationBootstrap(): Promise<void> {
    if (await this.readComplete()) return;
    this.logger.warn('the upgrade is not complete; after the roll-out, run: node dist/cli.js migrate --complete');
  }

  /**
   * Costs one SELECT until the upgrade is complete, and nothing afterwards.
   *
   * @throws OAuthError `temporarily_unavailable` if processes of release 1 may still use the database
   */
  async assertComplete(): Promise<void> {
    if (this.isComplete || (await this.readComplete())) return;
    throw OAuthError.unavailable(new Error('the upgrade from release 1 is not complete'));
  }

  private async readComplete(): Promise<boolean> {
    this.isComplete = !(await this.recorded.isUpgradeUnderWay());
    return this.isComplete;
  }
}

/**
 * Records that all processes of release 1 have ended. Requires a database without pending migrations.
 *
 * @returns whether the upgrade was incomplete before
 */
export async function completeUpgrade(dataSource: DataSource): Promise<boolean> {
  const isComplete = async (): Promise<boolean> => {
    const rows = await dataSource.query("SELECT 1 FROM recorded_value WHERE name = 'complete_release' AND value >= 2");
    return rows.length > 0;
  };
  if (await isComplete()) return false;
  await dataSource.query("UPDATE recorded_value SET value = 2 WHERE name = 'complete_release'");
  if (!(await isComplete())) {
    await dataSource.query("INSERT INTO recorded_value (name, value) VALUES ('complete_release', 2)");
  }
  return true;
}
