import { Get, Injectable, ServiceUnavailableException } from '@nestjs/common';
import { IsIn } from 'class-validator';
import { Database } from '../database/database.js';
import { ApiProperty, ApiRoute } from '../http/api-route.js';
import { ManagementController } from '../http/surfaces.js';

const MAX_WITHOUT_WRITE_SECONDS = 10;

/** Until the application has started, the listener responds instead (docs/decisions/0028-readiness.md). */
@Injectable()
export class Readiness {
  private stopping = false;

  constructor(private readonly database: Database) {}

  async unreadyReason(): Promise<string | undefined> {
    if (this.stopping) return 'stopping';
    const seconds = await this.database.secondsWithoutWrite();
    return seconds < MAX_WITHOUT_WRITE_SECONDS ? undefined : 'no write to the database succeeds';
  }

  stop(): void {
    this.stopping = true;
  }
}

class Health {
  @IsIn(['live', 'ready'])
  @ApiProperty('The result of the probe.', 'ready')
  status!: 'live' | 'ready';
}

@ManagementController('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  /** Checks nothing that a restart could not repair. */
  @Get('live')
  @ApiRoute({
    summary: 'Liveness probe',
    description: 'Succeeds while the process responds at all. Restart the process if it fails.',
    responseExamples: { '': { status: 'live' } },
    response: Health,
  })
  live(): Health {
    return { status: 'live' };
  }

  @Get('ready')
  @ApiRoute({
    summary: 'Readiness probe',
    description:
      'Fails with 503 until the process can serve requests, while it stops, and after 10 s without a successful write to the embedded database. Send requests only to ready processes.',
    response: Health,
  })
  async ready(): Promise<Health> {
    const reason = await this.readiness.unreadyReason();
    if (reason) throw new ServiceUnavailableException(reason);
    return { status: 'ready' };
  }
}
