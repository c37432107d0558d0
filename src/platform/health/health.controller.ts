import { Get, ServiceUnavailableException } from '@nestjs/common';
import { IsIn } from 'class-validator';
import { ApiRoute } from '../http/api-route.js';
import { ManagementController } from '../http/surfaces.js';
import { Readiness } from './readiness.js';

class Health {
  @IsIn(['live', 'ready'])
  status: 'live' | 'ready';
}

/** What the cluster's probes ask. */
@ManagementController('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  /** The process runs and its event loop turns; nothing that a restart would not mend is looked at. */
  @Get('live')
  @ApiRoute({ summary: 'Whether the process lives', response: Health })
  live(): Health {
    return { status: 'live' };
  }

  /** Requests may come: not while starting, stopping, or without the database. */
  @Get('ready')
  @ApiRoute({ summary: 'Whether requests may come', response: Health })
  async ready(): Promise<Health> {
    const obstacle = await this.readiness.obstacle();
    if (obstacle) throw new ServiceUnavailableException(obstacle);
    return { status: 'ready' };
  }
}
