import { Get, ServiceUnavailableException } from '@nestjs/common';
import { IsIn, IsString } from 'class-validator';
import { Configuration } from '../configuration/configuration.js';
import { Database } from '../database/database.js';
import { SqlClient } from '../database/sql-client.js';
import { ApiProperty, ApiRoute } from '../http/api-route.js';
import { ManagementController } from '../http/listener.decorators.js';
import { VERSION } from '../version.js';

const MAX_WITHOUT_WRITE_SECONDS = 10;

class Health {
  @IsIn(['live', 'ready'])
  @ApiProperty('The result of the probe.', 'ready')
  status!: 'live' | 'ready';

  @IsString()
  @ApiProperty('The version of the service.', VERSION)
  version!: string;
}

/** Until the application has started, the listener responds instead (docs/decisions/0028-readiness.md). */
@ManagementController('health')
export class HealthController {
  private isStopping = false;

  constructor(
    private readonly client: SqlClient,
    private readonly database: Database,
    private readonly configuration: Configuration,
  ) {}

  /** Checks nothing that a restart could not repair, unless the operator wants a restart (LIVENESS_OUTAGE_SECONDS). */
  @Get('live')
  @ApiRoute({
    summary: 'Liveness probe',
    description:
      'Succeeds while the process responds at all. With LIVENESS_OUTAGE_SECONDS, it fails with 503 after this time without the database. Restart the process if it fails.',
    response: Health,
  })
  live(): Health {
    const { LIVENESS_OUTAGE_SECONDS = Number.POSITIVE_INFINITY } = this.configuration;
    if (this.database.outageSeconds >= LIVENESS_OUTAGE_SECONDS)
      throw new ServiceUnavailableException('no statement has succeeded for LIVENESS_OUTAGE_SECONDS');
    return { status: 'live', version: VERSION };
  }

  @Get('ready')
  @ApiRoute({
    summary: 'Readiness probe',
    description:
      'Fails with 503 until the process can serve requests, while it stops, and after 10 s without a successful write to the embedded database. Send requests only to ready processes.',
    response: Health,
  })
  async ready(): Promise<Health> {
    if (this.isStopping) throw new ServiceUnavailableException('stopping');
    if (((await this.client.secondsWithoutWrite?.()) ?? 0) >= MAX_WITHOUT_WRITE_SECONDS)
      throw new ServiceUnavailableException('no write to the database succeeds');
    return { status: 'ready', version: VERSION };
  }

  /** From now on, the process is not ready. */
  stop(): void {
    this.isStopping = true;
  }
}
