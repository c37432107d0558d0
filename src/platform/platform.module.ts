import { type DynamicModule, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataSource, type DataSourceOptions } from 'typeorm';
import type { MigrationClass } from '../migrations/migrations.js';
import { Clock } from './clock.js';
import { Configuration } from './configuration/configuration.js';
import { dataSourceOptions } from './database/data-source-options.js';
import { Database } from './database/database.js';
import { DatabaseClock } from './database/database-clock.js';
import { awaitUsableDatabase, connectWithRetry, DatabaseStart } from './database/database-start.js';
import { MysqlClient } from './database/mysql-client.js';
import { SqlClient } from './database/sql-client.js';
import { SqliteClient } from './database/sqlite-client.js';
import { HealthController } from './health/health.controller.js';
import { MetricsController, MetricsRegistry } from './metrics.js';

export interface PlatformOptions {
  configuration: Configuration;
  metrics: MetricsRegistry;
  migrations?: MigrationClass[];
  clock?: Clock;
  /** How long the start waits for the database. The service waits without a limit, a command does not wait. */
  databaseWaitMs?: number;
}

@Module({})
export class PlatformModule {
  static forRoot(options: PlatformOptions): DynamicModule {
    const { configuration, metrics, migrations, clock = new Clock(), databaseWaitMs = Infinity } = options;
    return {
      module: PlatformModule,
      global: true,
      imports: [
        TypeOrmModule.forRootAsync({
          useFactory: () => ({
            ...dataSourceOptions(configuration, migrations, metrics),
            autoLoadEntities: true,
            retryAttempts: 0,
          }),
          dataSourceFactory: (options) => connectWithRetry(options as DataSourceOptions, databaseWaitMs),
        }),
      ],
      controllers: [HealthController, MetricsController],
      providers: [
        { provide: Configuration, useValue: configuration },
        { provide: Clock, useValue: clock },
        { provide: MetricsRegistry, useValue: metrics },
        { provide: DatabaseStart, useValue: new DatabaseStart(databaseWaitMs) },
        {
          provide: SqlClient,
          inject: [DataSource, DatabaseStart],
          useFactory: async (dataSource: DataSource, start: DatabaseStart) => {
            await awaitUsableDatabase(dataSource, configuration, start);
            return configuration.embedded ? SqliteClient.open(dataSource) : new MysqlClient(dataSource);
          },
        },
        Database,
        DatabaseClock,
      ],
      exports: [Configuration, Clock, MetricsRegistry, Database, DatabaseClock, DatabaseStart],
    };
  }
}
