import { Get, ServiceUnavailableException } from '@nestjs/common';
import { ManagementController } from '../http/surfaces.js';
import { Readiness } from './readiness.js';

/** What the cluster's probes ask. */
@ManagementController('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  /** The process runs and its event loop turns; nothing that a restart would not mend is looked at. */
  @Get('live')
  live(): { status: string } {
    return { status: 'live' };
  }

  /** Requests may come: not while starting, stopping, or without the database. */
  @Get('ready')
  async ready(): Promise<{ status: string }> {
    const obstacle = await this.readiness.obstacle();
    if (obstacle) throw new ServiceUnavailableException(obstacle);
    return { status: 'ready' };
  }
}
