import { Get, Injectable, ServiceUnavailableException } from '@nestjs/common';
import { IsIn } from 'class-validator';
import { Database } from '../database/database.js';
import { ApiProperty, ApiRoute } from '../http/api-route.js';
import { ManagementController } from '../http/surfaces.js';

/** A process whose writes have failed for this long is not ready. */
const MAX_WITHOUT_WRITE_SECONDS = 10;

/**
 * Knows whether the cluster may send requests to this process (docs/decisions/0028-readiness.md). The listener itself
 * responds until the application has started, so an instance of this class means that the database was usable once.
 */
@Injectable()
export class Readiness {
  private stopping = false;

  constructor(private readonly database: Database) {}

  /** Why this process is not ready; `undefined` if it is ready. */
  async unreadyReason(): Promise<string | undefined> {
    if (this.stopping) return 'stopping';
    const seconds = await this.database.secondsWithoutWrite();
    return seconds < MAX_WITHOUT_WRITE_SECONDS ? undefined : 'no write to the database succeeds';
  }

  /** Makes the process unready, so that the cluster stops sending requests. */
  stop(): void {
    this.stopping = true;
  }
}

class Health {
  @IsIn(['live', 'ready'])
  @ApiProperty('The result of the probe.', 'ready')
  status!: 'live' | 'ready';
}

/** The probes of the cluster (protocol §2.2). */
@ManagementController('health')
export class HealthController {
  constructor(private readonly readiness: Readiness) {}

  /** Succeeds while the event loop runs. It checks nothing that a restart could not repair. */
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

  /**
   * Fails while the process stops, and while it cannot write to the embedded database. Until the application has started,
   * the listener responds instead.
   */
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
